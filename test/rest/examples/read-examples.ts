// Reads the examples in the doc comments of the installed PostgREST client from its sources.
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

export interface Example {
  /** The class and method, as in `PostgrestQueryBuilder.select`. */
  readonly location: string
  readonly title: string
  /** The call of the client, in TypeScript. Several statements `const … = await` are alternatives with one response. */
  readonly call: string
}

/** An example that can run unmodified. */
export interface CompleteExample extends Example {
  readonly sql: string
  /** The documented response: usually JSON, otherwise its text. */
  readonly response: unknown
}

export interface Examples {
  /** The version of the client. */
  readonly version: string
  readonly all: readonly Example[]
  /** The examples with SQL, call and response. */
  readonly complete: readonly CompleteExample[]
}

/** The parts of the client for tables, views and functions. */
const parts = [
  'PostgrestClient',
  'PostgrestQueryBuilder',
  'PostgrestFilterBuilder',
  'PostgrestTransformBuilder',
  'PostgrestBuilder',
]

/** @throws Error when two examples of a location have the same title, or an example's SQL or response has no call */
export async function readExamples(): Promise<Examples> {
  const entry = createRequire(import.meta.url).resolve('@supabase/postgrest-js/package.json')
  const { version } = JSON.parse(await readFile(entry, 'utf8')) as { version: string }
  const read = await Promise.all(
    parts.map(async (part) => examplesOf(part, await readFile(join(dirname(entry), 'src', `${part}.ts`), 'utf8'))),
  )
  const found = read.flat()
  return { version, all: found, complete: found.filter(isComplete) }
}

/** Returns the name of an example, as in `PostgrestFilterBuilder.eq: With select()`. */
export function nameOf({ location, title }: Example): string {
  return `${location}: ${title.replaceAll('`', '')}`
}

interface Found extends Example {
  readonly sql: string | undefined
  readonly response: unknown
}

function isComplete(example: Found): example is Found & { sql: string } {
  return example.sql !== undefined && example.response !== undefined
}

/** Matches a comment and the name of the documented member. */
const documented =
  /\/\*\*(?<comment>(?:(?!\*\/).)*)\*\/\s*(?:(?:export|default|abstract|async|class)\s+)*(?<member>\w+)/gs

function examplesOf(part: string, source: string): Found[] {
  const found = [...source.matchAll(documented)].flatMap(({ groups: { comment = '', member = '' } = {} }) => {
    const sections = sectionsOf(comment)
    const texts = (tag: string) => {
      const ofTag = sections.filter((section) => section.tag === tag)
      const byTitle = new Map(ofTag.map(({ title, text }) => [title, text]))
      if (byTitle.size < ofTag.length) throw new Error(`${part}.${member} has two ${tag} with one title`)
      return byTitle
    }
    const [calls, sql, responses] = [texts('example'), texts('exampleSql'), texts('exampleResponse')]
    for (const title of [...sql.keys(), ...responses.keys()]) {
      if (!calls.has(title)) throw new Error(`${part}.${member} has SQL or a response without a call: ${title}`)
    }
    return [...calls].map(([title, call]) => {
      const response = responses.get(title)
      return {
        location: `${part}.${member}`,
        title,
        call,
        sql: sql.get(title),
        response: response === undefined ? undefined : parsed(response),
      }
    })
  })
  // A new form of comments in the client must not be skipped silently.
  const count = source.match(/@exampleSql\b/g)?.length ?? 0
  if (found.filter(({ sql }) => sql !== undefined).length !== count)
    throw new Error(`${part} has ${count} examples with SQL, and not all were understood`)
  return found
}

/** Returns the tags of a comment, each with the rest of its line and the content of its code fence. */
function sectionsOf(comment: string): { tag: string; title: string; text: string }[] {
  const text = comment.replaceAll(/^[ \t]*\* ?/gm, '').replaceAll('*\\/', '*/')
  return [...text.matchAll(/^@(\w+)[ \t]*([^\n]*)\n((?:(?!^@\w).)*)/gms)].map(
    ([, tag = '', title = '', body = '']) => ({ tag, title: title.trim(), text: fenced(body) }),
  )
}

/** Returns the text from the first fence to the last. Some examples have an extra fence, which is not code. */
function fenced(body: string): string {
  const lines = body.split('\n')
  const isFence = (line: string) => line.trim().startsWith('```')
  return lines
    .slice(lines.findIndex(isFence), lines.findLastIndex(isFence))
    .filter((line) => !isFence(line))
    .join('\n')
}

function parsed(response: string): unknown {
  try {
    return JSON.parse(response)
  } catch {
    return response
  }
}
