// Which control plane leads, and whether its region is ready: only the leading one has the metric of regions.

/** Returns whether the region of a control plane is ready; undefined if it does not lead, or has not observed the region. */
export async function readyRegion(url: string, key: string): Promise<boolean | undefined> {
  const response = await fetch(`${url}/metrics`, {
    headers: { authorization: `Bearer ${key}` },
    signal: AbortSignal.timeout(60_000),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`GET /metrics: ${response.status} ${text}`)
  const value = /^tenantry_region_ready\{.*\} (\d)$/m.exec(text)?.[1]
  return value === undefined ? undefined : value === '1'
}
