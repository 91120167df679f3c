// SQL that loads the shared server: its processor, memory, files, log and nested transactions.
import { effort } from '#test/support/effort.ts'
import type { Attack, Scene } from '../attack.ts'
import { describeRaw, openRaw, summary } from '../support/requests.ts'
import { openManySql, openSql, outcomeOf, repeatSql, trySql } from '../support/sql.ts'
import { allTargets } from '../support/target.ts'
import { cancelRequest, sslRequest, startup } from '#test/gateway/support/sql-wire.ts'

/** Matches the outcome of a session that runs within its share, or that was cancelled, ended or limited. */
const ended = /^(ok|40P01|57014|57P01|53\d\d\d|54\d\d\d|25P\d\d|still running)|terminat|closed|ECONNRESET/

/** Runs SQL that does not end by itself in several sessions, and waits until the attack is over. */
async function load(scene: Scene, sessions: number, sql: string): Promise<string> {
  const clients = await openManySql(scene, scene.attacker, sessions)
  const over = new Promise<string>((resolve) => setTimeout(() => resolve('still running'), scene.milliseconds))
  return summary(await Promise.all(clients.map((client) => Promise.race([trySql(client, sql), over]))))
}

export const serverAttacks: Attack[] = [
  {
    name: 'ten sessions that count a cross join',
    attacker: 'SQL',
    bound: 'age of a snapshot; sessions of a tenant',
    sees: ended,
    targets: allTargets,
    run: (scene) =>
      load(scene, 10, 'select count(*) from generate_series(1, 1000000) a, generate_series(1, 1000000) b'),
  },
  {
    name: 'a recursive query without an end',
    attacker: 'SQL',
    bound: 'temporary files of a session',
    sees: ended,
    targets: allTargets,
    run: (scene) =>
      load(
        scene,
        4,
        "with recursive r as (select repeat('x', 1000) as t, 1 as n union all select t, n + 1 from r) select count(t) from r",
      ),
  },
  {
    name: 'cursors WITH HOLD over large results',
    attacker: 'SQL',
    bound: 'temporary files of a session',
    sees: ended,
    smallRuns: [],
    run: (scene) =>
      load(
        scene,
        10,
        'declare held cursor with hold for select repeat(md5(n::text), 100) from generate_series(1, 10000000) n',
      ),
  },
  {
    name: 'variables of 500 MB each',
    attacker: 'SQL',
    bound: 'memory of a session',
    sees: ended,
    targets: allTargets,
    smallRuns: ['shared Postgres'],
    run: (scene) =>
      load(
        scene,
        effort({ small: 2, full: 6 }),
        `do $$ declare parts text[]; begin
           for n in 1..6 loop parts[n] := repeat('x', 500000000 + n); perform pg_sleep(0.2); end loop;
           perform pg_sleep(60); end $$`,
      ),
  },
  {
    name: '100,000 prepared statements in each session',
    attacker: 'SQL',
    bound: 'memory of a session',
    sees: ended,
    smallRuns: [],
    run: (scene) =>
      load(
        scene,
        4,
        `do $$ begin for n in 1..100000 loop
           execute format('prepare p%s as select %s', n, repeat('1 + ', 200) || n); end loop; end $$`,
      ),
  },
  {
    name: 'a million nested transactions',
    attacker: 'SQL',
    bound: 'age of a transaction',
    sees: ended,
    smallRuns: [],
    async run(scene) {
      const session = await openSql(scene, scene.attacker.databaseUrl)
      await session.query('create table nested (a int)')
      return load(
        scene,
        4,
        `do $$ begin for n in 1..1000000 loop
           begin insert into nested values (n); exception when division_by_zero then null; end; end loop; end $$`,
      )
    },
  },
  {
    name: '100,000 channels that are listened to',
    attacker: 'SQL',
    bound: 'memory of a session',
    sees: ended,
    smallRuns: [],
    run: (scene) =>
      load(scene, 4, `do $$ begin for n in 1..100000 loop execute format('listen channel_%s', n); end loop; end $$`),
  },
  {
    name: 'warnings without end in the log of the server',
    attacker: 'SQL',
    bound: 'lines and bytes of a service in the log',
    sees: ended,
    targets: allTargets,
    run: (scene) => load(scene, 4, `do $$ begin loop raise warning '%', repeat('x', 100000); end loop; end $$`),
  },
  {
    name: 'updates of wide rows without end',
    attacker: 'SQL',
    bound: 'WAL of a tenant; the quota of documents',
    sees: ended,
    async run(scene) {
      const session = await openSql(scene, scene.attacker.databaseUrl)
      await session.query(`create table wide (t text); alter table wide alter t set storage external;
        insert into wide select repeat('x', 100000) from generate_series(1, 50)`)
      const clients = await openManySql(scene, scene.attacker, 3)
      return repeatSql(scene, clients, "update wide set t = t || 'x'")
    },
  },
  {
    name: 'deadlocks, ten sessions',
    attacker: 'SQL',
    bound: 'sessions of a tenant',
    sees: /^(ok|40P01|57014|57P01)|terminat/,
    smallRuns: [],
    async run(scene) {
      const session = await openSql(scene, scene.attacker.databaseUrl)
      await session.query(
        'create table dead (a int primary key, b int); insert into dead select n, 0 from generate_series(1, 10) n',
      )
      const clients = await openManySql(scene, scene.attacker, 9)
      return repeatSql(
        scene,
        clients,
        (n) =>
          `update dead set b = ${n} where a = ${1 + ((n * 7) % 10)}; update dead set b = ${n} where a = ${1 + ((n * 3) % 10)}`,
      )
    },
  },
  {
    name: 'ANALYZE and REINDEX in a loop',
    attacker: 'SQL',
    bound: 'sessions of a tenant',
    sees: ended,
    smallRuns: [],
    async run(scene) {
      const session = await openSql(scene, scene.attacker.databaseUrl)
      await session.query(
        'create table indexed (a int primary key, t text); insert into indexed select n, md5(n::text) from generate_series(1, 50000) n',
      )
      const clients = await openManySql(scene, scene.attacker, 5)
      return repeatSql(scene, clients, (n) => (n % 2 === 0 ? 'analyze indexed' : 'reindex table indexed'))
    },
  },
  {
    name: 'statements of 100 MB that are wrong',
    attacker: 'SQL',
    bound: 'memory of a session; statements are not logged',
    sees: /^(42601|54\d\d\d|53\d\d\d|57P01|08P01)|terminat/,
    async run(scene) {
      const sessions = await openManySql(scene, scene.attacker, effort({ small: 1, full: 4 }))
      return repeatSql(scene, sessions, `selec '${'x'.repeat(effort({ small: 20_000_000, full: 100_000_000 }))}'`)
    },
  },
  {
    name: 'prepared transactions and replication slots',
    attacker: 'SQL',
    bound: 'neither is allowed',
    sees: /^(55000|42501|0A000|42883)/,
    async run(scene) {
      const session = await openSql(scene, scene.attacker.databaseUrl)
      const slot = await trySql(session, "select pg_create_logical_replication_slot('held', 'pgoutput')")
      const message = await trySql(session, "select pg_logical_emit_message(false, 'x', repeat('x', 1000000))")
      await session.query('begin; create table prepared (a int)')
      const prepared = await trySql(session, "prepare transaction 'held'")
      await session.query('rollback')
      return [prepared, slot, message].join(', ')
    },
  },
  {
    name: 'logins at the SQL port that do not continue',
    attacker: 'anonymous',
    bound: 'unauthenticated clients of an address; 10 s for a login',
    sees: /closed|open/,
    targets: allTargets,
    async run(scene) {
      const packets = [
        Buffer.alloc(0),
        startup(['user', `${scene.attacker.id}_admin`]),
        sslRequest,
        cancelRequest(Buffer.alloc(8)),
      ]
      const connections = Array.from({ length: effort({ small: 400, full: 2_000 }) }, (_, n) => {
        const connection = openRaw({ ...scene, address: scene.addressOf(n) }, scene.sqlPort)
        connection.socket.write(packets[n % packets.length] ?? '')
        return connection
      })
      await new Promise((resolve) => setTimeout(resolve, scene.milliseconds))
      const login = await outcomeOf(openSql(scene, scene.neighbour.databaseUrl))
      if (login !== 'ok') throw new Error(`The neighbour cannot log in: ${login}`)
      return summary(connections.map(describeRaw))
    },
  },
  {
    name: 'a comment of 100 MB on a table',
    attacker: 'SQL',
    bound: 'WAL and memory of a session',
    sees: ended,
    smallRuns: [],
    run: (scene) =>
      load(
        scene,
        1,
        `do $$ begin create table spoken (a int);
           for n in 1..10 loop execute format('comment on table spoken is %L', repeat(md5(n::text), 3000000)); end loop; end $$`,
      ),
  },
]
