// Finds what makes a requested media type: an aggregate of a relation's rows, or a function that returns the type. Pure.
import type { Catalog, MediaHandler, Routine } from '../registry/catalog.ts'
import type { Format } from '../request/read-accept.ts'
import type { Query } from '../request/read-query.ts'

/** Returns the format of a media type; undefined when only the formats of the interface can be made. */
export type MediaLookup = ((type: string) => Format | undefined) | undefined

/** Any media type, as the name of a domain. */
const anyType = '*/*'

/** Finds the media types of a relation's rows. */
export function mediaOfRows({ handlers }: Catalog, relation: string | undefined, query: Query): MediaLookup {
  if (handlers.size === 0) return undefined
  // An aggregate of a relation's own rows needs all their columns.
  const own = relation !== undefined && selectsAll(query) ? handlers.get(relation) : undefined
  const others = handlers.get('')
  if (own === undefined && others === undefined) return undefined
  return (type) => {
    const any = own?.get(anyType)
    const handler = any ?? own?.get(type) ?? others?.get(type)
    return handler === undefined
      ? undefined
      : mediaFormat(any === undefined ? type : 'application/octet-stream', handler)
  }
}

/** Finds the media types of functions with the same name. */
export function mediaOfRoutines(catalog: Catalog, routines: readonly Routine[], query: Query): MediaLookup {
  const lookups = routines.flatMap(({ returns }) => {
    const lookup = returns.media === undefined ? mediaOfRows(catalog, returns.relation, query) : mediaOfValue(returns)
    return lookup ?? []
  })
  if (lookups.length === 0) return undefined
  return (type) => {
    for (const lookup of lookups) {
      const format = lookup(type)
      if (format !== undefined) return format
    }
    return undefined
  }
}

function mediaOfValue({ media = anyType, base }: Routine['returns']): MediaLookup {
  return (type) => {
    if (media === anyType)
      return mediaFormat('application/octet-stream', { aggregate: undefined, isOfRows: false, base })
    return type === media || type === anyType
      ? mediaFormat(media, { aggregate: undefined, isOfRows: false, base })
      : undefined
  }
}

function mediaFormat(type: string, handler: MediaHandler): Format {
  return { kind: 'media', type, handler }
}

function selectsAll({ select, embedded }: Query): boolean {
  return embedded.length === 0 && (select === undefined || (select.length === 1 && select[0]?.kind === 'all'))
}
