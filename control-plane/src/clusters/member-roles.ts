// SQL that prepares a single Postgres to become the first member of a cluster, as Patroni does for a new one. Pure.

/** Verifiers of the passwords with which members copy from each other. */
interface MemberVerifiers {
  replicator: string
  rewind: string
}

/** Functions with which pg_rewind reads the files of another member. */
const rewindFunctions = [
  'pg_ls_dir(text, boolean, boolean)',
  'pg_stat_file(text, boolean)',
  'pg_read_binary_file(text)',
  'pg_read_binary_file(text, bigint, bigint, boolean)',
]

/** Returns the SQL, which a superuser runs in the database `postgres`. */
export function memberRolesSql({ replicator, rewind }: MemberVerifiers): string {
  return [
    `create role replicator login replication password '${replicator}'`,
    `create role rewind login password '${rewind}'`,
    ...rewindFunctions.map((name) => `grant execute on function pg_catalog.${name} to rewind`),
    'grant connect on database postgres to rewind',
  ].join(';\n')
}
