#!/bin/bash
# Checks that GET of path $2 on port $1 responds with 200, without starting a large program.
set -euo pipefail
exec 3<> "/dev/tcp/127.0.0.1/$1"
printf 'GET %s HTTP/1.0\r\nhost: localhost\r\n\r\n' "$2" >&3
read -r -t 4 status <&3
# The service would report a broken connection if its response were not read.
timeout 4 cat <&3 > /dev/null
[[ $status == 'HTTP/1.'[01]' 200 '* ]]
