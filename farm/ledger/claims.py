"""Named leases for what only one process may do at a time: reconciling, landing on a repository."""

from collections.abc import Collection

from sqlalchemy import insert, select, update

from farm.errors import StaleFence
from farm.ledger import schema
from farm.ledger.rows import Part


class Claims(Part):
    """Grants and ends claims; like a job's lease, each acquisition has a new fence."""

    def claim(self, name: str, owner: str, *, ttl_s: float) -> int | None:
        """The claim's fence when `owner` has it now (again), None while another one does."""
        now = self._clock()
        table = schema.claims
        with self._database.write(durable=False) as connection:
            row = connection.execute(select(table).where(table.c.name == name)).one_or_none()
            if row is None:
                connection.execute(insert(table).values(name=name, owner=owner, until=now + ttl_s, fence=1))
                return 1
            if row.until > now and row.owner != owner:
                return None
            fence = row.fence + int(row.owner != owner or row.until <= now)
            taken = connection.execute(
                update(table)
                .where(table.c.name == name, table.c.fence == row.fence)
                .values(owner=owner, until=now + ttl_s, fence=fence)
            )
            return fence if taken.rowcount == 1 else None

    def claimants(self, names: Collection[str]) -> dict[str, str]:
        """Who has which of these claims now; those that nobody has are left out."""
        table = schema.claims
        query = select(table.c.name, table.c.owner).where(
            table.c.name.in_(list(names)), table.c.owner.is_not(None), table.c.until > self._clock()
        )
        with self._database.read() as connection:
            return {row.name: row.owner for row in connection.execute(query)}

    def keep_claim(self, name: str, fence: int, *, ttl_s: float) -> None:
        """Hold a claim for another `ttl_s`. Raises StaleFence when it went to somebody else."""
        table = schema.claims
        with self._database.write(durable=False) as connection:
            kept = connection.execute(
                update(table)
                .where(table.c.name == name, table.c.fence == fence, table.c.owner.is_not(None))
                .values(until=self._clock() + ttl_s)
            )
        if kept.rowcount != 1:
            raise StaleFence(f"the claim on {name} went to somebody else")

    def release_claim(self, name: str, fence: int) -> None:
        """Give a claim back; nothing happens when it went to somebody else."""
        table = schema.claims
        with self._database.write(durable=False) as connection:
            connection.execute(
                update(table).where(table.c.name == name, table.c.fence == fence).values(owner=None, until=0.0)
            )
