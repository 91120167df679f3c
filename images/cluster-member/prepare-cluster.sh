#!/bin/bash
# Prepares a new cluster, once, on its first primary: the database of the home, and the role with which pg_rewind reads from the
# primary. Patroni gives that role its password and rights, but no right to connect once PUBLIC has none.
set -euo pipefail

exec psql -X -q -v ON_ERROR_STOP=1 -h /run/postgresql -U postgres -d postgres \
  -c 'create database home template template0' \
  -c 'create role rewind' \
  -c 'grant connect on database postgres to rewind'
