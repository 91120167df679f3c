// A question that any runtime of a tenant can answer.

/**
 * Asks all runtimes at once and gives the first answer. `ask` gives undefined where the tenant is not known.
 * @throws AggregateError when none answers
 */
export function firstResponse<T>(
  urls: readonly string[],
  request: (url: string) => Promise<T | undefined>,
): Promise<T> {
  return Promise.any(
    urls.map(async (url) => {
      const response = await request(url)
      if (response === undefined) throw new Error('the runtime does not know the tenant')
      return response
    }),
  )
}
