// The parts of a move without side effects: messages of the log, the statements that apply them, snapshots, and reasons.
import fc from 'fast-check'
import t from 'tap'
import { BackupError } from '#control-plane/backups/backup-error.ts'
import { compareObjects } from '#control-plane/backups/home-facts.ts'
import { attemptMove } from '#control-plane/moves/attempt-move.ts'
import { changeSql, insertSql } from '#control-plane/moves/change-sql.ts'
import { MoveError } from '#control-plane/moves/move-error.ts'
import { fileMove } from '#control-plane/moves/file-ends.ts'
import { isAtDestination, isAtOrigin } from '#control-plane/moves/move.ts'
import { readMessage, type Relation } from '#control-plane/moves/pgoutput.ts'
import { isBefore } from '#control-plane/moves/reverse-state.ts'
import { reasonToEnd, type ReverseFacts } from '#control-plane/moves/reverse.ts'
import { structureText } from '#control-plane/moves/structure.ts'
import { visibleIn } from '#control-plane/moves/snapshots.ts'
import { effort, seed } from '#test/support/effort.ts'

const relation: Relation = {
  id: 16_400,
  name: 'no"tes',
  isFull: false,
  columns: [
    { name: 'id', isKey: true },
    { name: 'text', isKey: false },
  ],
}
const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part))))
const id = [0, 0, 0x40, 0x10]

t.test('readMessage reads what pgoutput sends', async (t) => {
  t.same(readMessage(bytes('B', [0, 0, 0, 2, 0, 0, 1, 0], Array<number>(8).fill(0), [0, 0, 1, 2])), {
    type: 'begin',
    commitLsn: '2/100',
    xid: 258,
  })
  t.same(readMessage(bytes('C', Array<number>(9).fill(0), [0, 0, 0, 1, 0, 0, 0, 255], Array<number>(8).fill(0))), {
    type: 'commit',
    endLsn: '1/ff',
  })
  const column = (key: number, name: string) => bytes([key], `${name}\0`, [0, 0, 0, 25, 255, 255, 255, 255])
  const described = (identity: string) =>
    bytes('R', id, 't_1\0no"tes\0', identity, [0, 2], [...column(1, 'id')], [...column(0, 'text')])
  t.same(readMessage(described('d')), { type: 'relation', relation })
  t.match(readMessage(described('f')), { relation: { isFull: true } })
  const row = bytes([0, 3], 't', [0, 0, 0, 1], '7', 'n', 'u')
  t.same(readMessage(bytes('I', id, 'N', [...row])), {
    type: 'insert',
    relationId: 16_400,
    row: ['7', null, undefined],
  })
  t.match(readMessage(bytes('U', id, 'N', [...row])), { type: 'update', old: undefined, row: ['7', null, undefined] })
  t.match(readMessage(bytes('U', id, 'K', [...row], 'N', [...row])), { old: ['7', null, undefined], row: ['7'] })
  t.match(readMessage(bytes('D', id, 'O', [...row])), { type: 'delete', old: ['7', null, undefined] })
  t.same(readMessage(bytes('T', [0, 0, 0, 1], [2], id)), {
    type: 'truncate',
    relationIds: [16_400],
    restartsIdentity: true,
  })
  t.same(readMessage(bytes('Y', id)), { type: 'other' })
})

t.test('changeSql names a row by its key, or by all of its values', async (t) => {
  const table = '"t_1"."no""tes"'
  t.same(
    changeSql('t_1', relation, { type: 'update', relationId: 1, old: undefined, row: ['1', undefined] }),
    { text: `update only ${table} set "id" = $1 where "id" = $2`, values: ['1', '1'] },
    'a large value that has not changed stays',
  )
  t.same(
    changeSql('t_1', relation, { type: 'update', relationId: 1, old: ['1', null], row: ['2', 'b'] }),
    { text: `update only ${table} set "id" = $1, "text" = $2 where "id" = $3`, values: ['2', 'b', '1'] },
    'a changed key',
  )
  const columns = relation.columns.map((column) => ({ ...column, isAlways: column.isKey }))
  t.same(
    changeSql('t_1', { ...relation, columns }, { type: 'update', relationId: 1, old: undefined, row: ['1', 'b'] }),
    { text: `update only ${table} set "text" = $1 where "id" = $2 and "id" = $3`, values: ['b', '1', '1'] },
    'a column that no update may set',
  )
  const keyless = { ...relation, isFull: true, columns: relation.columns.map(({ name }) => ({ name, isKey: true })) }
  const { text, values } = changeSql('t_1', keyless, { type: 'delete', relationId: 1, old: ['1', null] })
  t.match(text, /^delete from only .* where ctid = \(select ctid from only .*num_nulls\("text"\) = 1 limit 1\)$/)
  t.same(values, ['1'])
})

t.test('insertSql has all rows in one statement', async (t) => {
  const table = '"t_1"."no""tes"'
  t.same(
    insertSql('t_1', relation, [
      ['1', null],
      ['2', 'b'],
    ]),
    {
      text: `insert into ${table} ("id", "text") overriding system value values ($1, $2), ($3, $4)`,
      values: ['1', null, '2', 'b'],
    },
  )
  t.same(insertSql('t_1', { ...relation, columns: [] }, [[], []]), {
    text: `insert into ${table} select from pg_catalog.generate_series(1, 2)`,
    values: [],
  })
})

t.test('structureText does not depend on the order of objects', async (t) => {
  const entry = (identity: string, statement = ['create']) => ({
    kind: 'view',
    identity,
    phase: 'after' as const,
    statement,
  })
  const text = (entries: ReturnType<typeof entry>[]) => structureText({ entries, tables: [], sequences: [] })
  t.equal(text([entry('a'), entry('b')]), text([entry('b'), entry('a')]))
  t.not(text([entry('a')]), text([entry('a', ['create or replace'])]))
  t.not(text([entry('a')]), text([entry('a'), entry('b')]))
})

t.test('isBefore compares positions of the log as numbers', async (t) => {
  t.ok(isBefore('0/FFFFFFFF', '1/0'))
  t.ok(isBefore('9/A', 'A/9'))
  t.ok(isBefore('1/F', '1/10'))
  t.notOk(isBefore('1/10', '1/10'))
  t.notOk(isBefore('10/0', '9/0'))
})

t.test('reasonToEnd names what ends a reverse', async (t) => {
  const until = '2026-01-01T01:00:00.000Z'
  const job = { operationId: 'o', tenantId: 't_1', region: 'local', from: 'old', to: 'new', state: 'succeeded' }
  const reverse = { ...job, step: 'done', attempts: 1, reverse: { until } }
  const facts = {
    reverse: { until },
    tenant: { isDeleted: false, regionId: 'local', isolation: 'schema-per-tenant', database: 'new' } as const,
    revert: undefined,
    isRestored: false,
  }
  const reason = (change: Partial<ReverseFacts>, at = '2026-01-01T00:59:59.999Z') =>
    reasonToEnd({ ...facts, ...change }, reverse, new Date(at))
  t.equal(reason({}), undefined)
  t.equal(reason({}, until), 'The time for a revert is over.')
  t.equal(reason({ isRestored: true }), 'A backup was restored after the move.')
  t.equal(reason({ tenant: undefined }), 'The tenant is deleted.')
  t.equal(reason({ tenant: { ...facts.tenant, isDeleted: true } }), 'The tenant is deleted.')
  t.equal(reason({ tenant: { ...facts.tenant, database: 'old' } }), 'The move was reverted.')
  t.equal(reason({ reverse: { until, ends: 'It has ended.' }, isRestored: true }), 'It has ended.')
})

t.test('A home is at an end of a move by its isolation, or by its shared database', async (t) => {
  const region = 'local'
  const shared = { regionId: region, isolation: 'schema-per-tenant', database: 'a' } as const
  const own = { regionId: region, isolation: 'database-per-tenant' } as const
  const cluster = { regionId: region, isolation: 'cluster-per-tenant' } as const
  const ends = (move: Parameters<typeof isAtOrigin>[0]) =>
    [shared, own, cluster].map((home) => [isAtOrigin(move, home), isAtDestination(move, home)])
  const [isNeither, isOrigin, isDestination] = [
    [false, false],
    [true, false],
    [false, true],
  ]
  t.same(ends({ region, from: 'a', to: 'b' }), [isOrigin, isNeither, isNeither])
  const grown = { fromIsolation: 'schema-per-tenant', toIsolation: 'database-per-tenant' } as const
  t.same(ends({ region, from: 'a', to: 'home', ...grown }), [isOrigin, isDestination, isNeither])
  const exchanged = { fromIsolation: 'database-per-tenant', toIsolation: 'cluster-per-tenant' } as const
  t.same(ends({ region, from: 'home', to: 'home', ...exchanged }), [isNeither, isOrigin, isDestination])
  const back = { fromIsolation: 'cluster-per-tenant', toIsolation: 'schema-per-tenant' } as const
  t.same(ends({ region, from: 'home', to: 'a', ...back }), [isDestination, isNeither, isOrigin])
  const elsewhere = { region, toRegion: 'other', from: 'a', to: 'a' }
  t.same(ends(elsewhere), [isOrigin, isNeither, isNeither], 'databases of two regions can have one name')
  t.equal(isAtOrigin(elsewhere, { ...shared, regionId: 'other' }), false)
  t.equal(isAtDestination(elsewhere, { ...shared, regionId: 'other' }), true)
})

t.test('visibleIn decides as Postgres does', async (t) => {
  const isVisible = visibleIn('100:110:103,107')
  t.same([99, 100, 103, 104, 107, 109, 110, 111].filter(isVisible), [99, 100, 104, 109])
  const wraps = visibleIn('4294967290:4294967300:4294967295')
  t.same([4_294_967_289, 4_294_967_295, 0, 3, 4, 5].filter(wraps), [4_294_967_289, 0, 3])
  fc.assert(
    fc.property(
      fc.bigInt(3n, 1n << 40n),
      fc.integer({ min: 1, max: 50 }),
      fc.integer({ min: -50, max: 60 }),
      (min, span, at) => {
        const [max, xid] = [min + BigInt(span), min + BigInt(at)]
        if (xid < 0n) return true
        return visibleIn(`${min}:${max}:`)(Number(xid & 0xffff_ffffn)) === xid < max
      },
    ),
    { seed, numRuns: effort({ small: 200, full: 20_000 }) },
  )
  t.throws(() => visibleIn('1:2'), /Invalid snapshot/)
})

t.test('fileMove lets files stay in a store of both ends, and copies them otherwise', async (t) => {
  const [local, bucket, another] = ['local', 'http://s3 files/', 'http://s3 files/other/']
  const shared = (...stores: string[]) => ({ isOnVolume: false, stores })
  const own = (...stores: string[]) => ({ isOnVolume: true, stores })
  t.equal(fileMove(shared(local), own(local)), 'copied', 'each runtime has a directory of its own')
  t.equal(fileMove(shared(bucket), own(bucket)), 'stay')
  t.equal(fileMove(shared(bucket), shared(another)), 'copied')
  t.equal(fileMove(shared(bucket), own(local)), 'copied')
  t.equal(fileMove(shared(bucket, local), own(local)), 'copied', 'the source can be read while it changes its store')
  t.throws(() => fileMove(shared(local), own(bucket)), /is not a volume/)
  t.throws(() => fileMove(own(bucket), shared(local)), /is not a volume/)
  t.throws(() => fileMove(shared(bucket, local), shared(bucket)), /are being moved from one store to another/)
})

t.test('attemptMove states a failed copy in terms of the move, and no internal text', async (t) => {
  const job = { operationId: 'o', tenantId: 't_1', region: 'local', from: 'a', to: 'b' }
  const log = { info: () => undefined, warn: () => undefined }
  const reasonFor = async (run: () => void) => {
    const work = { finish: () => Promise.resolve('not moved' as const), run: () => Promise.resolve().then(run) }
    const begun = { ...job, state: 'running', step: 'copy', attempts: 0 }
    return (await attemptMove(begun, work, { log }, new AbortController().signal)).reason
  }
  const failing = (error: Error) => () => {
    throw error
  }
  t.equal(
    await reasonFor(() => compareObjects([{ kind: 'index', count: 1, sha256: '' }], [])),
    'The copy differs from the home: there are 0 objects of the kind "index" instead of 1.',
  )
  const loadFailure = { kind: 'not created', what: 'the view "v" could not be created' } as const
  t.equal(
    await reasonFor(failing(new BackupError('MISMATCH', 'The backup could not be restored.', { loadFailure }))),
    'The home could not be copied: the view "v" could not be created.',
  )
  t.equal(
    await reasonFor(failing(new BackupError('FAILED', 'The home has an aggregate.'))),
    'The home has an aggregate.',
  )
  t.equal(await reasonFor(failing(new MoveError('A transaction has not ended.'))), 'A transaction has not ended.')
  t.match(await reasonFor(failing(new Error('secret'))), /^An internal error occurred\./)
})
