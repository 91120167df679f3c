#!/bin/bash
# Checks that the service on port $1 is alive, without starting Node, which would take more time than the check.
set -euo pipefail
exec 3<> "/dev/tcp/127.0.0.1/$1"
printf 'GET /internal/v1/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n' >&3
read -r -t 4 status <&3
[[ $status == 'HTTP/1.1 200 '* ]]
