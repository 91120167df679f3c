// Checks in a real cluster that its replicas copy from the primary with TLS, and that the primary accepts nothing else.
import type { Test } from 'tap'
import type { LabHost } from '#test/support/swarm-lab.ts'

/** A member of a cluster: its container, and the host that it is on. */
export interface MemberContainer {
  host: LabHost
  container: string
}

const counts =
  "select count(*), count(*) filter (where ssl and version = 'TLSv1.3') from pg_stat_replication join pg_stat_ssl using (pid)"

/** Runs psql in a member. @returns its output; of a failure, its message */
async function psql({ host, container }: MemberContainer, connection: string[], statement: string): Promise<string> {
  const command = ['psql', '-X', '-A', '-t', '-w', ...connection, '-c', statement]
  return host.docker('exec', container, ...command).then((text) => text.trim(), String)
}

/**
 * Checks that both replicas of a complete cluster are connected with TLS, and that a connection of theirs without TLS is rejected.
 * @param primary the primary
 * @param primaryName a name of the primary on the cluster's network
 * @param replica one of the replicas
 */
export async function checkReplicationTls(
  t: Test,
  primary: MemberContainer,
  primaryName: string,
  replica: MemberContainer,
): Promise<void> {
  const local = ['-h', '/run/postgresql', '-U', 'postgres', '-d', 'postgres']
  t.equal(await psql(primary, local, counts), '2|2', 'both connections of replication have TLS')
  t.match(await psql(replica, local, 'show primary_conninfo'), /sslmode=verify-ca .*channel_binding=disable/)
  const target = `host=${primaryName} user=replicator dbname=postgres`
  const plain = await psql(replica, ['-d', `${target} replication=true sslmode=disable`], 'IDENTIFY_SYSTEM')
  t.match(plain, /rejects replication connection .*no encryption/, 'replication without TLS is rejected')
  const rewind = await psql(
    replica,
    ['-d', `host=${primaryName} user=rewind dbname=postgres sslmode=disable`],
    'select 1',
  )
  t.match(rewind, /rejects connection .*"rewind".*no encryption/, 'and so is pg_rewind')
}
