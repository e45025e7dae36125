#!/usr/bin/env bash
# Installs Debian's Docker where no engine answers, and starts it. usage: start.sh [sudo]
set -euo pipefail
if ! command -v dockerd >/dev/null; then
  echo "apt: installing docker.io"
  "$@" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "$@" apt-get install -y -qq --no-install-recommends docker.io >/dev/null
fi
if [ -d /run/systemd/system ]; then "$@" systemctl start docker; else "$@" service docker start; fi
for _ in $(seq 50); do
  docker version >/dev/null 2>&1 && exit 0
  sleep 0.2
done
echo "Docker does not answer; see its log, and be root or in group docker" >&2
exit 1
