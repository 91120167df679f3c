// What the stream that leads back after a move stores in the old database, in a schema of its own: its positions, which
// change in the transactions that apply the changes, a hash of the structure that the new home must have, and the files that
// the old home has.
import type pg from 'pg'
import { asAdmin, type SharedLocation } from '../backups/index.ts'
import { reverseSchema } from '../homes/index.ts'
import { identifier, literal } from '../platform/identifiers.ts'
import { namesOf } from './move.ts'

/** The sessions that apply changes. Each commits alone, so each has a position. */
type Part = 'service' | 'tenant'

const parts = ['service', 'tenant'] as const

const tableOf = (tenantId: string, part: Part) =>
  `${identifier(reverseSchema(tenantId))}.${identifier(`${part}_position`)}`
const stateOf = (tenantId: string) => `${identifier(reverseSchema(tenantId))}.state`
const filesOf = (tenantId: string) => `${identifier(reverseSchema(tenantId))}.files`

/** Returns SQL that creates the state of a reverse, without positions. The home still has its name. */
export function createStateSql(tenantId: string, operationId: string, structure: string): string {
  return [
    dropStateSql(tenantId),
    `create schema ${identifier(reverseSchema(tenantId))}`,
    `create table ${stateOf(tenantId)} as select ${literal(operationId)} as operation_id, ${literal(structure)} as structure`,
    `create table ${filesOf(tenantId)} as select blob_id from ${identifier(tenantId)}.storage_objects`,
    ...parts.flatMap((part) => [
      `create table ${tableOf(tenantId, part)} (lsn pg_lsn not null)`,
      `insert into ${tableOf(tenantId, part)} values ('0/0')`,
    ]),
  ].join(';\n')
}

/** Returns SQL that removes the state of a reverse. */
export function dropStateSql(tenantId: string): string {
  return `drop schema if exists ${identifier(reverseSchema(tenantId))} cascade`
}

/** Returns SQL that sets the position from which on changes flow back. */
export function beginAtSql(tenantId: string, lsn: string): string {
  return parts.map((part) => `update ${tableOf(tenantId, part)} set lsn = ${literal(lsn)}`).join(';\n')
}

/** Returns SQL that lets the login that changes the tenant's tables record its position. */
export function positionRightsSql(tenantId: string): string {
  const role = identifier(namesOf(tenantId).apply)
  return [
    `grant usage on schema ${identifier(reverseSchema(tenantId))} to ${role}`,
    `grant select, update on ${tableOf(tenantId, 'tenant')} to ${role}`,
  ].join(';\n')
}

/** The state of a reverse. */
export interface ReverseState {
  operationId: string
  structure: string
  /** Whether the position from which on changes flow back is set. */
  hasBegun: boolean
}

/** Reads the state of a reverse; undefined if there is none. */
export async function readState(admin: pg.Client, tenantId: string): Promise<ReverseState | undefined> {
  const { rows: present } = await admin.query('select 1 where to_regclass($1) is not null', [stateOf(tenantId)])
  if (present.length === 0) return undefined
  const { rows } = await admin.query<ReverseState>(
    `select operation_id as "operationId", structure,
       (select bool_and(lsn > '0/0') from ${tableOf(tenantId, 'service')}) as "hasBegun" from ${stateOf(tenantId)}`,
  )
  return rows[0]
}

/** Reads the state of a reverse in a session of its own. */
export function readReverseState(
  location: SharedLocation,
  tenantId: string,
  signal: AbortSignal,
): Promise<ReverseState | undefined> {
  return asAdmin(location, signal, (client) => readState(client, tenantId))
}

/** Returns the IDs of files that the old home had at the move. None of them was removed since. */
export async function readOldFiles(
  location: SharedLocation,
  tenantId: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { rows } = await asAdmin(location, signal, (client) =>
    client.query<{ id: string }>(`select blob_id::text as id from ${filesOf(tenantId)}`),
  )
  return rows.map(({ id }) => id)
}

/** Reads the position of a session in its transaction, and lets no other session with the same part change it. */
export async function readPosition(client: pg.Client, tenantId: string, part: Part): Promise<string> {
  const { rows } = await client.query<{ lsn: string }>(
    `select lsn::pg_catalog.text as lsn from ${tableOf(tenantId, part)} for update`,
  )
  const lsn = rows[0]?.lsn
  if (lsn === undefined) throw new Error('The position of a reverse is not stored.')
  return lsn
}

/** Records the position of a session in its transaction. It never decreases. */
export async function writePosition(client: pg.Client, tenantId: string, part: Part, lsn: string): Promise<void> {
  const table = tableOf(tenantId, part)
  await client.query(`update ${table} set lsn = ${literal(lsn)} where lsn operator(pg_catalog.<) ${literal(lsn)}`)
}

/** Whether a position of the write-ahead log precedes another. */
export function isBefore(lsn: string, other: string): boolean {
  return numberOf(lsn) < numberOf(other)
}

function numberOf(lsn: string): bigint {
  const [high = '', low = ''] = lsn.split('/')
  return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`)
}
