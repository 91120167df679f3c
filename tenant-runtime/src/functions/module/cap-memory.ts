// Makes a module import the memory that it defines, so that the host can limit its size to the function's configuration,
// measure its peak, and reuse it.
import { memoryImport } from './abi.ts'
import type { ModuleShape, Section } from './check-module.ts'
import { Reader, u32Bytes } from './reader.ts'

const importSection = 2
const memorySection = 5
const typeSection = 1
const memoryKind = 2

/** Returns the module with its memory imported; an unchanged module if it has none. */
export function importMemory(bytes: Uint8Array, { sections, memory }: ModuleShape): Uint8Array {
  if (memory === undefined) return bytes
  const entry = [
    ...nameBytes(memoryImport.module),
    ...nameBytes(memoryImport.name),
    memoryKind,
    0,
    ...u32Bytes(memory.initial),
  ]
  const chunks: Uint8Array[] = [bytes.subarray(0, 8)]
  const imports = sections.find(({ id }) => id === importSection)
  const copy = (section: Section) => chunks.push(bytes.subarray(section.begin, section.end))
  const added =
    imports === undefined
      ? asSection(Uint8Array.of(1, ...entry))
      : asSection(extended(bytes.subarray(imports.content, imports.end), entry))
  let isAdded = false
  for (const section of sections) {
    // The import section follows the types; custom sections may be anywhere.
    if (!isAdded && section.id !== 0 && section.id !== typeSection) {
      chunks.push(added)
      isAdded = true
    }
    if (section.id !== importSection && section.id !== memorySection) copy(section)
  }
  return Buffer.concat(chunks)
}

/** Returns the content of an import section with one more entry at its end. */
function extended(content: Uint8Array, entry: number[]): Uint8Array {
  const reader = new Reader(content)
  const count = reader.u32()
  return Buffer.concat([Uint8Array.from(u32Bytes(count + 1)), content.subarray(reader.at), Uint8Array.from(entry)])
}

function asSection(content: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.of(importSection, ...u32Bytes(content.length)), content])
}

function nameBytes(name: string): number[] {
  const bytes = [...Buffer.from(name)]
  return [...u32Bytes(bytes.length), ...bytes]
}
