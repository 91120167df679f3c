// Reads a month's hours and corrections as the usage API exports them (`granularity=hour`), as JSON or CSV. Pure.
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { type Correction, amountNames, noAmounts, type Amounts } from '../usage/index.ts'
import { parseMonth } from '../platform/months.ts'
import type { ExportedUsage } from './verify.ts'

const Digits = Type.Record(Type.String(), Type.String({ pattern: '^-?[0-9]{1,30}$' }))
const Instant = Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:00:00\\.000Z$' })
const Hash = Type.String({ pattern: '^[0-9a-f]{64}$' })

const Export = Type.Object({
  tenant_id: Type.String(),
  granularity: Type.Literal('hour'),
  /** The hours. Only closed hours have a hash. */
  parts: Type.Array(Type.Object({ start: Instant, amounts: Digits, hash: Type.Optional(Hash) })),
  corrections: Type.Array(
    Type.Object({
      number: Type.Integer(),
      hour: Instant,
      amounts: Digits,
      billed_month: Type.String(),
      previous_hash: Hash,
      hash: Hash,
    }),
  ),
})

/**
 * Reads an export.
 * @throws Error that names what is not as exported
 */
export function readExport(text: string): ExportedUsage {
  const given = text.trimStart().startsWith('{') ? (JSON.parse(text) as unknown) : fromCsv(text)
  if (!Value.Check(Export, given)) {
    const [first] = Value.Errors(Export, given)
    const reason = first === undefined ? 'unknown form' : `${first.instancePath || 'the value'} ${first.message}`
    throw new Error(`The file is not an export of usage by hour: ${reason}.`)
  }
  return {
    hours: given.parts
      .filter(({ hash }) => hash !== undefined)
      .map(({ start, amounts }) => ({
        tenantId: given.tenant_id,
        hour: new Date(start),
        amounts: readAmounts(amounts),
      })),
    corrections: given.corrections.map((correction) => readCorrection(given.tenant_id, correction)),
  }
}

function readCorrection(
  tenantId: string,
  {
    number,
    hour,
    amounts,
    billed_month: billed,
    previous_hash: previous,
    hash,
  }: Static<typeof Export>['corrections'][number],
): Correction {
  const billedMonth = parseMonth(billed)
  if (billedMonth === undefined)
    throw new Error(`Correction ${number} is billed with the invalid month "${billed}". It must be YYYY-MM.`)
  // No hash and no figure contains the time of recording.
  return {
    tenantId,
    number,
    hour: new Date(hour),
    amounts: readAmounts(amounts),
    billedMonth,
    recordedAt: billedMonth,
    previous,
    hash,
  }
}

function readAmounts(texts: Readonly<Record<string, string>>): Amounts {
  const amounts = noAmounts()
  for (const name of amountNames) {
    // Exports of earlier versions have no messages.
    const text = texts[snake(name)] ?? (name === 'realtimeMessages' ? '0' : undefined)
    if (text === undefined)
      throw new Error(`An export of only some resources can't be verified: it has no ${snake(name)}.`)
    amounts[name] = BigInt(text)
  }
  return amounts
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** Returns the rows of the CSV in the form of the JSON. Its cells need no quotes. */
function fromCsv(text: string): unknown {
  const [header = [], ...rows] = text
    .trim()
    .split(/\r?\n/)
    .map((line) => line.split(','))
  const named = rows.map((row) => Object.fromEntries(header.map((name, index) => [name, row[index] ?? ''])))
  const amounts = (row: Record<string, string>) =>
    Object.fromEntries(amountNames.map(snake).flatMap((name) => (row[name] === undefined ? [] : [[name, row[name]]])))
  const corrections = named.filter(({ kind }) => kind === 'correction')
  return {
    tenant_id: named[0]?.['tenant_id'],
    granularity: named.every(({ kind }) => kind === 'hour' || kind === 'correction') ? 'hour' : undefined,
    parts: named
      .filter(({ kind }) => kind === 'hour')
      .map((row) => ({
        start: row['start'],
        amounts: amounts(row),
        ...(row['hash'] === '' ? {} : { hash: row['hash'] }),
      })),
    corrections: corrections.map((row) => ({
      number: Number(row['number']),
      hour: row['start'],
      amounts: amounts(row),
      billed_month: row['billed_month'],
      previous_hash: row['previous_hash'],
      hash: row['hash'],
    })),
  }
}
