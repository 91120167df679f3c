// A request that any runtime of a tenant can serve.

/**
 * Requests all runtimes at once and returns the first response. `request` returns undefined if a runtime does not know
 * the tenant.
 * @throws AggregateError if all requests fail
 */
export function firstResponse<T>(
  urls: readonly string[],
  request: (url: string) => Promise<T | undefined>,
): Promise<T> {
  return Promise.any(
    urls.map(async (url) => {
      const response = await request(url)
      if (response === undefined) throw new Error('The runtime does not know the tenant.')
      return response
    }),
  )
}
