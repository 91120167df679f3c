// What the repair of a home reports. Pure.

export interface HomeReport {
  /** Tables of the service that were missing and were made again, without their rows. */
  lost: string[]
}

/** What went wrong with a home, in words that may be shown; the cause may not. */
export class HomeError extends Error {
  /** Reason of the tenant's condition. */
  readonly reason: 'Error' | 'HomeDamaged'

  constructor(message: string, { reason = 'Error', ...options }: ErrorOptions & { reason?: HomeError['reason'] } = {}) {
    super(message, options)
    this.reason = reason
  }
}

const maxNamed = 5

/** Reads what a repair of a home did. @param lines of `repairReportSql` @throws HomeError where something could not be repaired */
export function readReport(lines: readonly string[]): HomeReport {
  const of = (kind: string) =>
    lines.filter((line) => line.startsWith(`${kind}|`)).map((line) => line.slice(kind.length + 1))
  const left = of('left')
  if (left.length > 0) throw damaged(left)
  return { lost: of('lost') }
}

/** Makes the error that names the first problems of a damaged home. @param errors lines of `home_problems()` */
export function damaged(errors: readonly string[]): HomeError {
  const more = errors.length > maxNamed ? ` and ${errors.length - maxNamed} more` : ''
  return new HomeError(`the home is damaged: ${errors.slice(0, maxNamed).join('; ')}${more}`, {
    reason: 'HomeDamaged',
  })
}
