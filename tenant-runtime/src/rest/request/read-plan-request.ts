// `Accept: application/vnd.pgrst.plan`: Postgres' plan of a request's statement instead of its rows. Pure.

const options = ['analyze', 'verbose', 'settings', 'buffers', 'wal'] as const

export interface PlanRequest {
  readonly isJson: boolean
  /** The options of EXPLAIN. */
  readonly options: readonly (typeof options)[number][]
  /** The media type whose statement is planned. */
  readonly of: string
}

const planType = /^application\/vnd\.pgrst\.plan(\+text|\+json)?\s*(?:;|$)/i

/** Reads the header; undefined when it requests no plan. Unknown options are ignored. */
export function readPlanRequest(accept = ''): PlanRequest | undefined {
  const match = planType.exec(accept.trim())
  if (match === null) return undefined
  const named = /;\s*options=([a-z|]*)/i.exec(accept)?.[1]?.toLowerCase().split('|') ?? []
  return {
    isJson: match[1]?.toLowerCase() === '+json',
    options: options.filter((option) => named.includes(option)),
    of: /;\s*for="([^"]*)"/i.exec(accept)?.[1] ?? 'application/json',
  }
}

/** Returns the `Content-Type` of a plan. */
export function planContentType({ isJson, options, of }: PlanRequest): string {
  const chosen = options.length === 0 ? '' : `; options=${options.join('|')}`
  return `application/vnd.pgrst.plan+${isJson ? 'json' : 'text'}; for="${of.replaceAll(/[^!-~ ]/g, '')}"${chosen}; charset=utf-8`
}
