// Which transactions a snapshot of Postgres contains. Pure.

/** The text of a `pg_snapshot`: `xmin:xmax:xip,…`. */
const form = /^(\d+):(\d+):([\d,]*)$/

/**
 * Returns a function that decides whether the snapshot contains a committed transaction, whose number has 32 bits.
 * @throws Error for any other text
 */
export function visibleIn(snapshot: string): (xid: number) => boolean {
  const [, xmin, xmax, running = ''] = form.exec(snapshot) ?? []
  if (xmin === undefined || xmax === undefined) throw new Error(`Invalid snapshot "${snapshot}".`)
  const [first, next] = [BigInt(xmin), BigInt(xmax)]
  const inProgress = new Set(running === '' ? [] : running.split(',').map(BigInt))
  const epoch = 1n << 32n
  return (xid) => {
    // The nearest number with these 32 bits.
    let whole = (next / epoch) * epoch + BigInt(xid)
    if (whole > next + epoch / 2n) whole -= epoch
    else if (whole < next - epoch / 2n) whole += epoch
    return whole < first || (whole < next && !inProgress.has(whole))
  }
}
