// The report of a home's repair. Pure.

export interface HomeReport {
  /** Tables of the service that were missing and were created again without their rows. */
  lost: string[]
}

/** An error of a home, with a public message. Its cause is not public. */
export class HomeError extends Error {
  /** Reason of the tenant's condition. */
  readonly reason: 'Error' | 'HomeDamaged'

  constructor(message: string, { reason = 'Error', ...options }: ErrorOptions & { reason?: HomeError['reason'] } = {}) {
    super(message, options)
    this.reason = reason
  }
}

const maxListed = 5

/** Reads the report of a home's repair. @param lines of `repairReportSql` @throws HomeError if violations remain */
export function readReport(lines: readonly string[]): HomeReport {
  const of = (kind: string) =>
    lines.filter((line) => line.startsWith(`${kind}|`)).map((line) => line.slice(kind.length + 1))
  const remaining = of('remaining')
  if (remaining.length > 0) throw damaged(remaining)
  return { lost: of('lost') }
}

/** Creates the error that lists the first violations of a damaged home. @param errors lines of `home_problems()` */
export function damaged(errors: readonly string[]): HomeError {
  const more = errors.length > maxListed ? ` and ${errors.length - maxListed} more` : ''
  return new HomeError(`The home is damaged: ${errors.slice(0, maxListed).join('; ')}${more}.`, {
    reason: 'HomeDamaged',
  })
}
