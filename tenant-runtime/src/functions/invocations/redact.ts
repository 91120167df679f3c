// Takes a function's secrets out of texts that others read: errors, records, logs (specification, section 2.4). Finds them
// all in one pass (Aho and Corasick), however many there are, and also those that line breaks tear apart.

import { secretForms } from '../triggers/webhook-signature.ts'
import type { FunctionRecord } from '../function.ts'

const shortestSecret = 4
/** Of a line of a secret that has several: a key's lines are as secret as the key, what stands around them is often a common word. */
const shortestLine = 8
const shown = '[redacted]'

/** Every value of the environment is taken for a secret, but for very short ones, which would garble any text. */
export function redact(text: string, environment: Readonly<Record<string, string>>): string {
  return new Secrets(environment).redact(text)
}

/** First and last index. */
type Interval = readonly [from: number, to: number]

/** The secrets of one function. */
export class Secrets {
  readonly #environment: Readonly<Record<string, string>>
  /** Made when there is a text to look through. */
  #tree: SecretTree | undefined

  constructor(environment: Readonly<Record<string, string>>) {
    this.#environment = environment
  }

  /** @param isCut the text goes on where we can't see it: what may be the beginning of a secret at its end is taken out too */
  redact(text: string, isCut = false): string {
    if (text === '') return text
    this.#tree ??= new SecretTree(Object.values(this.#environment))
    let at = 0
    let out = ''
    for (const [from, to] of this.#tree.find(text, isCut)) {
      // Lines stay lines.
      out +=
        text.slice(at, from) +
        text
          .slice(from, to + 1)
          .split('\n')
          .map(() => shown)
          .join('\n')
      at = to + 1
    }
    return out + text.slice(at)
  }
}

/** A tree of the secrets' characters without line breaks; node 0 is its root. */
class SecretTree {
  readonly #children = new Map<number, number>()
  readonly #edges: [code: number, child: number][][] = [[]]
  readonly #depth: number[] = [0]
  /** The node of the longest other text in the tree that ends as this one's does. */
  readonly #shorter: number[] = [0]
  /** Length of the longest secret that ends at a node. */
  readonly #ends: number[] = [0]

  constructor(values: readonly string[]) {
    for (const value of values) {
      const lines = value.split(/[\r\n]+/)
      const secret = lines.join('')
      // Hosts' and headers' names come back in small letters.
      if (secret.length >= shortestSecret) for (const form of new Set([secret, secret.toLowerCase()])) this.#add(form)
      // Quoted, as in JSON, a line break is something else, and a line may be said alone.
      if (lines.length > 1) for (const line of lines) if (line.length >= shortestLine) this.#add(line)
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
        this.#shorter.push(0)
        this.#ends.push(0)
      }
      node = child
    }
    this.#ends[node] = secret.length
  }

  #child(node: number, code: number): number | undefined {
    return this.#children.get(keyOf(node, code))
  }

  /** Level by level, so that what is shorter is linked already. */
  #link(): void {
    const queue = [0]
    for (const node of queue) {
      for (const [code, child] of this.#edges[node] ?? []) {
        const shorter = node === 0 ? 0 : this.#step(this.#shorter[node] ?? 0, code)
        this.#shorter[child] = shorter
        if (this.#ends[child] === 0) this.#ends[child] = this.#ends[shorter] ?? 0
        queue.push(child)
      }
    }
  }

  #step(from: number, code: number): number {
    for (let node = from; ; node = this.#shorter[node] ?? 0) {
      const child = this.#child(node, code)
      if (child !== undefined) return child
      if (node === 0) return 0
    }
  }

  /** Intervals of the text that are secrets, in order, none of them overlapping. */
  find(text: string, isCut: boolean): Interval[] {
    if (this.#children.size === 0) return []
    const found: Interval[] = []
    /** Where the characters are that are no line breaks. */
    const slots = new Int32Array(text.length)
    let count = 0
    let node = 0
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (code === 10 || code === 13) continue
      slots[count++] = at
      node = this.#step(node, code)
      const length = this.#ends[node] ?? 0
      if (length > 0) found.push([slots[count - length] ?? 0, at])
    }
    const begun = this.#depth[node] ?? 0
    if (isCut && begun >= shortestSecret) found.push([slots[count - begun] ?? 0, slots[count - 1] ?? 0])
    return joined(found)
  }
}

function keyOf(node: number, code: number): number {
  return node * 65_536 + code
}

/** In the order of their ends before. */
function joined(found: readonly Interval[]): Interval[] {
  const apart: Interval[] = []
  for (const [from, to] of found.toReversed()) {
    const later = apart.at(-1)
    if (later !== undefined && to >= later[0]) apart[apart.length - 1] = [Math.min(from, later[0]), later[1]]
    else apart.push([from, to])
  }
  return apart.reverse()
}

/** The texts that must not be shown of a function: its variables, and the secret of its webhook. */
export function secretsOf({ config, trigger }: Pick<FunctionRecord, 'config' | 'trigger'>): Record<string, string> {
  const webhook = typeof trigger === 'object' && 'Webhook' in trigger ? secretForms(trigger.Webhook.secret) : []
  return { ...config.environment, ...Object.fromEntries(webhook.map((text, n) => [`webhook secret ${n}`, text])) }
}
