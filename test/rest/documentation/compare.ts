// Compares a response with the documented one.
import { isDeepStrictEqual } from 'node:util'
import type { ApiResponse } from '#test/support/runtime.ts'
import type { DocumentedResponse } from './page.ts'

/** Returns how a response differs from the documented one: one text for each difference. */
export function differences(path: string, wanted: DocumentedResponse, given: ApiResponse): string[] {
  return [
    ...(given.status === wanted.status ? [] : [`the status is ${given.status}, not ${wanted.status}: ${given.text}`]),
    ...headerDifferences(wanted.headers ?? {}, given),
    ...bodyDifferences(path, wanted, given),
  ]
}

function headerDifferences(wanted: NonNullable<DocumentedResponse['headers']>, { headers }: ApiResponse): string[] {
  return Object.entries(wanted).flatMap(([name, value]) => {
    const given = headers[name] === undefined ? undefined : String(headers[name])
    const same = value instanceof RegExp ? value.test(given ?? '') : isSameHeader(name, value, given)
    return same ? [] : [`the header ${name} is ${given ?? 'missing'}, not ${value ?? 'missing'}`]
  })
}

/** Compares two values of a header. The preferences that were applied, and the methods that are allowed, have no order. */
function isSameHeader(name: string, wanted: string | undefined, given: string | undefined): boolean {
  const isSet = name === 'preference-applied' || name === 'allow'
  const parts = (value: string | undefined) => value?.split(/, */).toSorted()
  return isSet ? isDeepStrictEqual(parts(wanted), parts(given)) : wanted === given
}

function bodyDifferences(path: string, wanted: DocumentedResponse, { text }: ApiResponse): string[] {
  const { text: wantedText, body } = wanted
  if (wantedText !== undefined) {
    const same = wantedText instanceof RegExp ? wantedText.test(text) : unbroken(text) === unbroken(wantedText)
    return same ? [] : [`the body is ${text}, not ${wantedText}`]
  }
  if (body === undefined) return []
  const given = parsed(text)
  const part = wanted.status >= 300 && isRecord(body) && isRecord(given) ? membersOf(given, Object.keys(body)) : given
  const same = contains(/[?&]order=/.test(path) ? identity : sorted, body, part)
  return same ? [] : [`the body is ${text}, not ${JSON.stringify(body)}`]
}

/** Removes line breaks between rows. */
function unbroken(text: string): string {
  return text.replaceAll(/ *\n */g, '')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

type Arrange = (rows: readonly unknown[]) => readonly unknown[]
const identity: Arrange = (rows) => rows
const sorted: Arrange = (rows) => rows.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))

/** Reports whether the given value is the wanted one. `arrange` applies to the rows of the response itself. */
function contains(arrange: Arrange, wanted: unknown, given: unknown): boolean {
  if (!Array.isArray(wanted) || !Array.isArray(given)) return isPart(wanted, given)
  if (wanted.at(-1) === '..')
    return wanted.slice(0, -1).every((row) => given.some((candidate) => isPart(row, candidate)))
  return wanted.length === given.length && isPart(arrange(wanted), arrange(given))
}

function isPart(wanted: unknown, given: unknown): boolean {
  if (Array.isArray(wanted) && Array.isArray(given)) {
    if (wanted.at(-1) === '..') return contains(identity, wanted, given)
    return wanted.length === given.length && wanted.every((element, at) => isPart(element, given[at]))
  }
  if (isRecord(wanted) && isRecord(given)) {
    const names = Object.keys(wanted)
    return names.length === Object.keys(given).length && names.every((name) => isPart(wanted[name], given[name]))
  }
  return isDeepStrictEqual(wanted, given)
}

function membersOf(value: Record<string, unknown>, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, value[name]]))
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
