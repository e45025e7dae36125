#!/bin/sh
# One job by hand: $1 is an empty folder. REPO, BASE, OP and BOX (the docker command, ready to run) are given.
set -eu
cd "$1"
mkdir work out
git -C "$REPO" archive "$BASE" | tar -x -C work
git -C work init -q
git -C work add -A
git -C work commit -q -m base
chown -R 65534:65534 work out
eval "$BOX"
grep -q '"complete": true' out/result.json
git -C work add -A
git -C work diff --binary --cached HEAD >patch
git clone -q "$REPO" landed
git -C landed apply --index ../patch
git -C landed commit -q -m "$OP: copied"
test -s "landed/copied/$OP.txt"
