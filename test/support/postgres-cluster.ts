// A cluster of Postgres as in a region: a primary, two replicas of which one confirms each commit, and links that stand for the network.
// The test decides which member is the primary.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'
import { query, startPostgres, type TestPostgres } from './postgres.ts'
import { openTcpLink, type TcpLink } from './tcp-link.ts'
import { until } from './until.ts'

export interface ClusterMember {
  postgres: TestPostgres
  /** The link through which clients reach the member. */
  link: TcpLink
  /** The link through which the member receives the log of the first primary; undefined for that one. */
  upstream: TcpLink | undefined
}

export interface PostgresCluster {
  /** The first primary, then the replicas. */
  members: readonly [ClusterMember, ClusterMember, ClusterMember]
  /** The port that leads to the primary, as that of a cluster's routers. */
  port: number
  /** The addresses of the members for clients. */
  addresses: string[]
  /** Lets the router lead to a member, or to none. Its connections end. */
  route(member: ClusterMember | undefined): void
  /** Loses what its connections send from now on, as when the host of a router is gone. New ones pass another router. */
  loseRouter(): void
  /** Makes a replica the primary, whose commits no other member confirms, and lets the router lead to it. */
  promote(member: ClusterMember): Promise<void>
}

/** Starts the cluster, which ends with the test. */
export async function startPostgresCluster(t: Test): Promise<PostgresCluster> {
  const primary = await startPostgres({
    wal_level: 'replica',
    wal_receiver_timeout: '2s',
    wal_retrieve_retry_interval: '100ms',
  })
  const members: ClusterMember[] = [{ postgres: primary, link: await openTcpLink(primary.port), upstream: undefined }]
  for (const name of ['a', 'b']) {
    const upstream = await openTcpLink(primary.port)
    const postgres = await primary.openStandby({ port: upstream.port, name })
    members.push({ postgres, link: await openTcpLink(postgres.port), upstream })
  }
  const [first, second, third] = members
  if (first === undefined || second === undefined || third === undefined) throw new Error('a member is missing')
  const superuser = primary.url('postgres')
  await query(superuser, "alter system set synchronous_standby_names = 'ANY 1 (a, b)'")
  await query(superuser, 'select pg_reload_conf()')
  await until(async () => {
    const [row] = await query(
      superuser,
      "select count(*)::int as n from pg_stat_replication where sync_state = 'quorum'",
    )
    return row?.['n'] === 2
  }, 'both replicas confirm commits')

  const sockets = new Set<Socket>()
  let target: ClusterMember | undefined = first
  const server = createServer((client) => {
    const onward = target === undefined ? undefined : connect(target.link.port, '127.0.0.1')
    if (onward === undefined) {
      client.destroy()
      return
    }
    for (const [one, other] of [
      [client, onward],
      [onward, client],
    ] as const) {
      sockets.add(one)
      one.pipe(other)
      one.on('error', () => other.destroy())
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  const route = (member: ClusterMember | undefined) => {
    target = member
    for (const socket of [...sockets]) socket.destroy()
  }
  t.teardown(async () => {
    server.close()
    route(undefined)
    for (const { postgres, link, upstream } of members) {
      await link.stop()
      await upstream?.stop()
      await postgres.stop()
    }
  })
  return {
    members: [first, second, third],
    port: address.port,
    addresses: members.map(({ link }) => `127.0.0.1:${link.port}`),
    route,
    loseRouter() {
      for (const socket of sockets) socket.unpipe().resume()
    },
    async promote(member) {
      await query(member.postgres.url('postgres'), 'select pg_promote()')
      await query(member.postgres.url('postgres'), 'alter system reset synchronous_standby_names')
      await query(member.postgres.url('postgres'), 'select pg_reload_conf()')
      route(member)
    },
  }
}
