// Matches texts of records with clients' patterns and regular expressions, in Postgres and for a limited time.
import { RoundTripError } from '../../database/round-trip-error.ts'
import { sql } from '../../database/statement.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { PatternMatch } from './match-filter.ts'
import { changesContext } from './table-facts.ts'

type Pattern = Pick<PatternMatch, 'operator' | 'pattern'>

/** The number of patterns that one query matches with a text. */
const batchSize = 250
/** The time that a batch may take, and a single pattern of a batch that took too long. */
const batchTime = '500ms'
const singleTime = '50ms'

const matchText = `
  select case m->>0 when 'like' then $1 like (m->>1) when 'ilike' then $1 ilike (m->>1)
    when 'imatch' then $1 ~* (m->>1) else $1 ~ (m->>1) end as matches
  from jsonb_array_elements($2::jsonb) with ordinality e (m, n) order by n`

/** The result of a pattern: whether it matches, or `failed` if Postgres could not match it in time. */
export type MatchResult = boolean | 'failed'

/** The results of patterns by their texts. */
export class MatchResults {
  readonly #results = new Map<string, Map<string, MatchResult>>()

  get({ text, ...pattern }: PatternMatch): MatchResult {
    return this.#results.get(text)?.get(keyOf(pattern)) ?? false
  }

  /**
   * Matches texts with patterns, each pair once.
   * @throws RoundTripError when the database does not respond
   */
  async add(tenant: Tenant, matches: readonly PatternMatch[]): Promise<void> {
    for (const [text, patterns] of patternsByText(matches)) {
      const results = new Map<string, MatchResult>()
      this.#results.set(text, results)
      const listed = [...patterns.values()]
      for (let at = 0; at < listed.length; at += batchSize)
        await matchBatch(tenant, text, listed.slice(at, at + batchSize), results)
    }
  }
}

function patternsByText(matches: readonly PatternMatch[]): Map<string, Map<string, Pattern>> {
  const texts = new Map<string, Map<string, Pattern>>()
  for (const { text, operator, pattern } of matches) {
    const patterns = texts.get(text) ?? new Map<string, Pattern>()
    texts.set(text, patterns.set(keyOf({ operator, pattern }), { operator, pattern }))
  }
  return texts
}

function keyOf({ operator, pattern }: Pattern): string {
  return `${operator} ${pattern}`
}

async function matchBatch(
  tenant: Tenant,
  text: string,
  batch: readonly Pattern[],
  results: Map<string, MatchResult>,
): Promise<void> {
  try {
    for (const [at, matches] of (await query(tenant, text, batch, batchTime)).entries()) {
      const pattern = batch[at]
      if (pattern !== undefined) results.set(keyOf(pattern), matches)
    }
  } catch (error) {
    if (!isOfPattern(error)) throw error
    // The patterns one by one, so that one of them harms no other.
    for (const pattern of batch) results.set(keyOf(pattern), await matchSingle(tenant, text, pattern))
  }
}

async function matchSingle(tenant: Tenant, text: string, pattern: Pattern): Promise<MatchResult> {
  try {
    return (await query(tenant, text, [pattern], singleTime))[0] ?? false
  } catch (error) {
    if (isOfPattern(error)) return 'failed'
    throw error
  }
}

async function query(
  { database }: Tenant,
  text: string,
  patterns: readonly Pattern[],
  time: string,
): Promise<boolean[]> {
  const listed = patterns.map(({ operator, pattern }) => [operator, pattern])
  const results = await database.read(
    changesContext,
    sql(`set local statement_timeout = '${time}'`),
    sql(matchText, text, JSON.stringify(listed)),
  )
  return (results.at(-1)?.rows ?? []).map((row) => row['matches'] === true)
}

/** Whether the pattern is the reason: it took too long, or it is not valid for this text. */
function isOfPattern(error: unknown): boolean {
  return error instanceof RoundTripError && (error.sqlstate === '57014' || error.sqlstate?.startsWith('22') === true)
}
