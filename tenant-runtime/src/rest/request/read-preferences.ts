// The headers by which a client says what it wants back. Pure.

export interface Preferences {
  return: 'minimal' | 'representation' | 'headers-only' | undefined
  count: 'exact' | 'planned' | 'estimated' | undefined
  /** `application/vnd.pgrst.object+json`: exactly one record, as an object. */
  singular: boolean
  /** A profile header: a PostgREST client, which expects an empty answer where it asked for none. */
  profiled: boolean
}

export function readPreferences(headers: Record<string, string | string[] | undefined>): Preferences {
  const preferences = new Map(
    String(headers['prefer'] ?? '')
      .split(',')
      .map((part) => part.trim().split('='))
      .map(([name = '', value = '']) => [name.toLowerCase(), value]),
  )
  const wanted = preferences.get('return')
  const count = preferences.get('count')
  return {
    return: wanted === 'minimal' || wanted === 'representation' || wanted === 'headers-only' ? wanted : undefined,
    count: count === 'exact' || count === 'planned' || count === 'estimated' ? count : undefined,
    singular: String(headers['accept'] ?? '').includes('application/vnd.pgrst.object'),
    profiled: headers['accept-profile'] !== undefined || headers['content-profile'] !== undefined,
  }
}
