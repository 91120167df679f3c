// Removes a function's secrets from texts that others read: errors, records, logs (specification, section 2.4). It finds all
// secrets in one pass (Aho-Corasick), also those that line breaks divide.

import { secretForms } from '../triggers/webhook-signature.ts'
import type { FunctionRecord } from '../function.ts'

const minSecretLength = 4
/** Shortest line of a multi-line secret that is removed alone. A key's lines are secret; shorter ones are often common words. */
const minLineLength = 8
const replacement = '[redacted]'

/** Removes all values of the environment from a text, except very short ones, which could be part of any text. */
export function redact(text: string, environment: Readonly<Record<string, string>>): string {
  return new Secrets(environment).redact(text)
}

/** The first and the last index of a secret. */
type Interval = readonly [from: number, to: number]

/** The secrets of one function. */
export class Secrets {
  readonly #environment: Readonly<Record<string, string>>
  /** Created with the first text. */
  #tree: SecretTree | undefined

  constructor(environment: Readonly<Record<string, string>>) {
    this.#environment = environment
  }

  /** Removes secrets. @param isCut whether the text was cut, so that the beginning of a secret at its end is removed as well */
  redact(text: string, isCut = false): string {
    if (text === '') return text
    this.#tree ??= new SecretTree(Object.values(this.#environment))
    let at = 0
    let out = ''
    for (const [from, to] of this.#tree.find(text, isCut)) {
      // The number of lines does not change.
      out +=
        text.slice(at, from) +
        text
          .slice(from, to + 1)
          .split('\n')
          .map(() => replacement)
          .join('\n')
      at = to + 1
    }
    return out + text.slice(at)
  }
}

/** A trie of the secrets without line breaks; node 0 is its root. */
class SecretTree {
  readonly #children = new Map<number, number>()
  readonly #edges: [code: number, child: number][][] = [[]]
  readonly #depth: number[] = [0]
  /** The failure links: the node of the longest proper suffix of a node's text that is in the trie. */
  readonly #suffix: number[] = [0]
  /** Length of the longest secret that ends at a node. */
  readonly #ends: number[] = [0]

  constructor(values: readonly string[]) {
    for (const value of values) {
      const lines = value.split(/[\r\n]+/)
      const secret = lines.join('')
      // Names of hosts and headers are returned in lower case.
      if (secret.length >= minSecretLength) for (const form of new Set([secret, secret.toLowerCase()])) this.#add(form)
      // JSON escapes line breaks, and a function may write a single line.
      if (lines.length > 1) for (const line of lines) if (line.length >= minLineLength) this.#add(line)
    }
    this.#link()
  }

  #add(secret: string): void {
    let node = 0
    for (let n = 0; n < secret.length; n++) {
      const code = secret.charCodeAt(n)
      let child = this.#child(node, code)
      if (child === undefined) {
        child = this.#depth.length
        this.#children.set(keyOf(node, code), child)
        this.#edges[node]?.push([code, child])
        this.#edges.push([])
        this.#depth.push(n + 1)
        this.#suffix.push(0)
        this.#ends.push(0)
      }
      node = child
    }
    this.#ends[node] = secret.length
  }

  #child(node: number, code: number): number | undefined {
    return this.#children.get(keyOf(node, code))
  }

  /** Sets the failure links by breadth-first search, so that those of shorter texts are set first. */
  #link(): void {
    const queue = [0]
    for (const node of queue) {
      for (const [code, child] of this.#edges[node] ?? []) {
        const suffix = node === 0 ? 0 : this.#step(this.#suffix[node] ?? 0, code)
        this.#suffix[child] = suffix
        if (this.#ends[child] === 0) this.#ends[child] = this.#ends[suffix] ?? 0
        queue.push(child)
      }
    }
  }

  #step(from: number, code: number): number {
    for (let node = from; ; node = this.#suffix[node] ?? 0) {
      const child = this.#child(node, code)
      if (child !== undefined) return child
      if (node === 0) return 0
    }
  }

  /** Returns the intervals of the text that are secrets, in order and without overlaps. */
  find(text: string, isCut: boolean): Interval[] {
    if (this.#children.size === 0) return []
    const found: Interval[] = []
    /** Indexes of the characters that are not line breaks. */
    const indexes = new Int32Array(text.length)
    let count = 0
    let node = 0
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (code === 10 || code === 13) continue
      indexes[count++] = at
      node = this.#step(node, code)
      const length = this.#ends[node] ?? 0
      if (length > 0) found.push([indexes[count - length] ?? 0, at])
    }
    const matched = this.#depth[node] ?? 0
    if (isCut && matched >= minSecretLength) found.push([indexes[count - matched] ?? 0, indexes[count - 1] ?? 0])
    return joined(found)
  }
}

function keyOf(node: number, code: number): number {
  return node * 65_536 + code
}

/** Joins overlapping intervals, which are in the order of their ends. */
function joined(found: readonly Interval[]): Interval[] {
  const apart: Interval[] = []
  for (const [from, to] of found.toReversed()) {
    const later = apart.at(-1)
    if (later !== undefined && to >= later[0]) apart[apart.length - 1] = [Math.min(from, later[0]), later[1]]
    else apart.push([from, to])
  }
  return apart.reverse()
}

/** Returns a function's secrets: the values of its environment, and the secret of its webhook. */
export function secretsOf({ config, trigger }: Pick<FunctionRecord, 'config' | 'trigger'>): Record<string, string> {
  const webhook = typeof trigger === 'object' && 'Webhook' in trigger ? secretForms(trigger.Webhook.secret) : []
  return { ...config.environment, ...Object.fromEntries(webhook.map((text, n) => [`webhook secret ${n}`, text])) }
}
