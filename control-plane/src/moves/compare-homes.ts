// Compares a home that is in use with its copy: both as they are after the same transactions.
import type pg from 'pg'
import { asReader, readHomeObjects, readSharedFacts, type HomeObjects } from '../backups/index.ts'
import type { Pace } from '../platform/pace.ts'
import { flushLog, followChanges } from './follow-changes.ts'
import { namesOf } from './move.ts'
import { MoveError } from './move-error.ts'
import type { Locations } from './locations.ts'
import { visibleIn } from './snapshots.ts'
import { structureText } from './structure.ts'

type Follow = Parameters<typeof followChanges>[0]
type Tables = Awaited<ReturnType<typeof readSharedFacts>>['tables']

const maxTries = 5

/**
 * Compares the row counts and content hashes of all tables.
 * @throws MoveError that names the first table that differs
 */
export async function compareHomes(
  { source, target, tenantId, pace }: Locations & { pace: Pace },
  objects: HomeObjects,
  follow: Follow,
  signal: AbortSignal,
): Promise<void> {
  const names = namesOf(tenantId)
  const atOneMoment = async (client: pg.Client) => {
    await agree(client, follow)
    const wanted = (await readSharedFacts(client, objects, 'frames-2', pace)).tables
    await client.query('commit')
    return wanted
  }
  const wanted = await asReader(source, tenantId, tenantId, signal, atOneMoment, names.source)
  const ofCopy = async (client: pg.Client) => (await readSharedFacts(client, objects, 'frames-2', pace)).tables
  rejectDifference(wanted, await asReader(target, tenantId, tenantId, signal, ofCopy, names.target))
}

/** Begins a snapshot of the source, and applies exactly its transactions to the copy. */
async function agree(client: pg.Client, follow: Follow): Promise<void> {
  for (let tries = 1; ; tries++) {
    await client.query('begin isolation level repeatable read, read only')
    const { rows } = await client.query<{ snapshot: string }>(
      'select pg_catalog.pg_current_snapshot()::text as snapshot',
    )
    const isVisible = visibleIn(rows[0]?.snapshot ?? '')
    const upTo = await flushLog(follow.slot)
    try {
      await followChanges(follow, { upTo, accepts: isVisible })
      return
    } catch (error) {
      // Two transactions may have become visible in another order than that of their commits.
      if (!(error instanceof MoveError && error.isTemporary) || tries >= maxTries) throw error
      await client.query('rollback')
      await abandon(follow)
    }
  }
}

/** Ends the transactions of an attempt. */
export async function abandon({ slot, admin, tenant }: Follow): Promise<void> {
  for (const session of [slot, admin, tenant]) await session.query('rollback')
}

function rejectDifference(wanted: Tables, found: Tables): void {
  const copies = new Map(found.map((table) => [table.name, table]))
  for (const { name, rows, hash } of wanted) {
    const copy = copies.get(name)
    if (copy === undefined) throw differs(`the table "${name}" is missing`)
    if (copy.rows !== rows) throw differs(`the table "${name}" has ${copy.rows} rows instead of ${rows}`)
    if (copy.hash !== hash) throw differs(`the content of the table "${name}" is not the same`)
  }
}

function differs(how: string): MoveError {
  return new MoveError(`The copy differs from the home: ${how}.`, { isLasting: true })
}

/**
 * Compares the definitions of all objects of the home with those that were copied.
 * @throws MoveError when they have changed
 */
export async function rejectChangedObjects(reader: pg.Client, tenantId: string, objects: HomeObjects): Promise<void> {
  const now = await readHomeObjects(reader, tenantId, tenantId)
  if (structureText(objects) !== structureText(now))
    throw new MoveError('The structure of the home has changed during the move.', { isTemporary: true })
}
