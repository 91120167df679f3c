// Packs a month's counts by group, method, status class and latency into few bytes. Pure.
//
// The format is the version (1), then for each count five words and a varint. A word is the varint of its number in the
// list below, from 1 on. A word that is not in the list is 0, its length and its UTF-8.
import type { CellKey } from './meters.ts'
import { ByteReader, writeVarint } from './varint.ts'

const version = 1

/** The known words. Stored months refer to their numbers, so words may only be added at the end. */
const words = [
  '',
  'requests',
  'refused_requests',
  'egress_bytes',
  'latency',
  'rest',
  'storage',
  'functions',
  'other',
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'OTHER',
  '2xx',
  '3xx',
  '4xx',
  '5xx',
  'inf',
  'rejected_requests',
]
const numberOf = new Map(words.map((word, index) => [word, index + 1]))

/** Counts by the key's parts, joined by line feeds. */
export type Cells = Map<string, bigint>

/** Adds a value to the count of its key. Changes `cells`. */
export function addToCell(cells: Cells, { meter, group, method, statusClass, bucket }: CellKey, value: bigint): void {
  const name = [meter, group, method, statusClass, bucket].join('\n')
  cells.set(name, (cells.get(name) ?? 0n) + value)
}

export function cellList(cells: Cells): { key: CellKey; value: bigint }[] {
  return [...cells].map(([name, value]) => {
    const [meter = '', group = '', method = '', statusClass = '', bucket = ''] = name.split('\n')
    return { key: { meter, group, method, statusClass, bucket }, value }
  })
}

/** Packs counts in the format that this file's header describes. Without counts the result is empty. */
export function packCells(cells: Cells): Uint8Array {
  if (cells.size === 0) return new Uint8Array()
  const bytes = [version]
  for (const [name, value] of cells) {
    for (const word of name.split('\n')) writeWord(bytes, word)
    writeVarint(bytes, value)
  }
  return Uint8Array.from(bytes)
}

/**
 * Unpacks counts.
 * @throws Error for bytes that `packCells` did not write
 */
export function unpackCells(packed: Uint8Array): Cells {
  const cells: Cells = new Map()
  if (packed.length === 0) return cells
  if (packed[0] !== version) throw new Error(`Packed counts have the unknown version ${packed[0]}.`)
  const reader = new ByteReader(packed, 1)
  while (!reader.isAtEnd) {
    const name = Array.from({ length: 5 }, () => readWord(reader)).join('\n')
    cells.set(name, reader.varint())
  }
  return cells
}

function writeWord(into: number[], word: string): void {
  const number = numberOf.get(word)
  writeVarint(into, number ?? 0)
  if (number !== undefined) return
  const text = Buffer.from(word, 'utf8')
  writeVarint(into, text.length)
  into.push(...text)
}

function readWord(reader: ByteReader): string {
  const number = reader.small()
  if (number === 0) return reader.text(reader.small())
  const word = words[number - 1]
  if (word === undefined) throw new Error(`Packed counts refer to the unknown word ${number}.`)
  return word
}
