"""The ledger's tables, in SQL that SQLite and PostgreSQL both take."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

#: Raised when a table changes (not when one is added); a ledger of another version is refused, not guessed at.
VERSION = 3

metadata = MetaData()
# SQLite only counts up by itself in a column of type INTEGER.
_sequence = BigInteger().with_variant(Integer(), "sqlite")

meta = Table("meta", metadata, Column("name", String, primary_key=True), Column("value", String, nullable=False))

runs = Table(
    "runs",
    metadata,
    Column("id", String, primary_key=True),
    Column("recipe", String, nullable=False),
    Column("repo", Text, nullable=False),
    Column("push_to", Text),
    Column("base", String, nullable=False),
    Column("accept", String, nullable=False),
    Column("attempts", Integer, nullable=False),
    # Who performs the stages, whatever the recipe says.
    Column("executors", String),
    # Most that its model calls may cost, millionths of a dollar; null: no limit of its own.
    Column("budget_micro_usd", BigInteger),
    Column("created_at", Float, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", String, primary_key=True),
    Column("run", String, ForeignKey("runs.id"), nullable=False),
    Column("op", String, nullable=False),
    Column("state", String, nullable=False),
    Column("attempt", Integer, nullable=False, default=0),
    Column("transients", Integer, nullable=False, default=0),
    Column("fence", Integer, nullable=False, default=0),
    Column("cancel_requested", Boolean, nullable=False, default=False),
    Column("parked_from", String),
    Column("park_reason", String),
    Column("fault", String),
    Column("summary", Text),
    Column("commit_id", String),
    Column("branch", String),
    Column("updated_at", Float, nullable=False),
    # Who may act on the job, until when, and how often in a row a holder vanished.
    Column("lease_owner", String),
    Column("lease_until", Float, nullable=False, default=0.0),
    Column("losses", Integer, nullable=False, default=0),
    # Not before this time is its next step due; when the reconciler last enqueued it.
    Column("poll_at", Float, nullable=False),
    Column("nudged_at", Float, nullable=False, default=0.0),
    Index("jobs_run", "run"),
    Index("jobs_due", "state", "poll_at"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("job", String, ForeignKey("jobs.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("started_at", Float, nullable=False),
    Column("ended_at", Float),
    Column("fault", String),
    Column("summary", Text),
    Column("trace", String),
)

artifacts = Table(
    "artifacts",
    metadata,
    Column("job", String, ForeignKey("jobs.id"), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("name", String, primary_key=True),
    Column("sha256", String, nullable=False),
)

gate_results = Table(
    "gate_results",
    metadata,
    Column("job", String, ForeignKey("jobs.id"), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("gate", String, primary_key=True),
    Column("ruling", String, nullable=False),
    Column("basis", String),
    Column("summary", Text, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("seq", _sequence, primary_key=True, autoincrement=True),
    Column("at", Float, nullable=False),
    Column("run", String, nullable=False),
    Column("job", String, ForeignKey("jobs.id"), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("kind", String, nullable=False),
    Column("body", Text, nullable=False),
    Column("once", String),
    UniqueConstraint("job", "once", name="events_once"),
    Index("events_run", "run", "seq"),
    Index("events_job", "job", "seq"),
    sqlite_autoincrement=True,
)

usage = Table(
    "usage",
    metadata,
    Column("request", String, primary_key=True),
    Column("run", String, ForeignKey("runs.id"), nullable=False),
    Column("job", String, ForeignKey("jobs.id"), nullable=False),
    Column("op", String, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("stage", String, nullable=False),
    Column("visit", Integer, nullable=False),
    Column("step", Integer, nullable=False),
    Column("model", String, nullable=False),
    Column("at", Float, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("cache_write_5m_tokens", Integer, nullable=False),
    Column("cache_write_1h_tokens", Integer, nullable=False),
    Column("cache_read_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("cost_micro_usd", BigInteger, nullable=False),
    Column("prices", String, nullable=False),
    Column("whole", Boolean, nullable=False),
    Index("usage_job", "job"),
    Index("usage_run", "run"),
    Index("usage_at", "at"),
)

# What calls under way may cost at most; gone when they are settled, void when their time is over.
reservations = Table(
    "reservations",
    metadata,
    Column("id", String, primary_key=True),
    Column("run", String, ForeignKey("runs.id"), nullable=False),
    Column("job", String, ForeignKey("jobs.id"), nullable=False),
    Column("micro_usd", BigInteger, nullable=False),
    Column("at", Float, nullable=False),
    Column("until", Float, nullable=False),
)

# What the call would have cost at most that a job's budgets did not cover last.
shortfalls = Table(
    "shortfalls",
    metadata,
    Column("job", String, ForeignKey("jobs.id"), primary_key=True),
    Column("micro_usd", BigInteger, nullable=False),
)

# Who may ask the gateway in a job's name; only digests, so that a reader of the ledger learns no token.
tokens = Table(
    "tokens",
    metadata,
    Column("sha256", String, primary_key=True),
    Column("job", String, ForeignKey("jobs.id"), nullable=False),
    Column("issued_at", Float, nullable=False),
    Column("revoked_at", Float),
    Index("tokens_job", "job"),
)

# Answers that were paid for, by the digest of who asked what at which step.
answers = Table(
    "answers",
    metadata,
    Column("question", String, primary_key=True),
    Column("job", String, ForeignKey("jobs.id"), nullable=False),
    Column("sha256", String, nullable=False),
    Column("request", String, nullable=False),
    Column("at", Float, nullable=False),
)

# What a job waits for, written with each question; a row that is late is nobody's.
waits = Table(
    "waits",
    metadata,
    Column("job", String, ForeignKey("jobs.id"), primary_key=True),
    Column("what", String, nullable=False),
    Column("until", Float, nullable=False),
)

claims = Table(
    "claims",
    metadata,
    Column("name", String, primary_key=True),
    Column("owner", String),
    Column("until", Float, nullable=False),
    Column("fence", Integer, nullable=False),
)
