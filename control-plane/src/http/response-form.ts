// Chooses the form of a response by the path's extension, or else by `Accept` (RFC 9110, section 12.5.1).
import type { FastifyRequest } from 'fastify'
import { ControlError } from '../platform/errors.ts'

/** Forms of a response and their media types. */
export const formTypes = { json: 'application/json', csv: 'text/csv', pdf: 'application/pdf' } as const
/** A form that a response can have. */
export type Form = keyof typeof formTypes

/**
 * Returns the form of a response.
 * @param offered forms in the order of preference
 * @param extension of the path, without its dot; it takes precedence over `Accept`
 * @throws ControlError NOT_FOUND for another extension, NOT_ACCEPTABLE if no offered form is accepted
 */
export function responseForm<Offered extends Form>(
  request: Pick<FastifyRequest, 'headers'>,
  offered: readonly Offered[],
  extension?: string,
): Offered {
  if (extension !== undefined) {
    const named = offered.find((form) => form === extension)
    if (named === undefined)
      throw new ControlError('NOT_FOUND', `Unknown form "${extension.slice(0, 100)}". Allowed: ${offered.join(', ')}.`)
    return named
  }
  const ranges = acceptedRanges(request.headers.accept ?? '*/*')
  let best: { form: Offered; quality: number } | undefined
  for (const form of offered) {
    const quality = qualityOf(formTypes[form], ranges)
    if (quality > (best?.quality ?? 0)) best = { form, quality }
  }
  if (best === undefined)
    throw new ControlError(
      'NOT_ACCEPTABLE',
      `The response is not available in an accepted form. Available: ${offered.map((form) => formTypes[form]).join(', ')}.`,
    )
  return best.form
}

interface Range {
  type: string
  quality: number
}

function acceptedRanges(header: string): Range[] {
  return header.split(',').map((part) => {
    const [type = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
    const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
    return {
      type,
      quality: quality === undefined ? 1 : /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(quality) ? Number(quality) : 0,
    }
  })
}

/** Returns the quality of the most specific range that contains the type. */
function qualityOf(type: string, ranges: readonly Range[]): number {
  for (const pattern of [type, `${type.split('/')[0] ?? ''}/*`, '*/*']) {
    const range = ranges.find((one) => one.type === pattern)
    if (range !== undefined) return range.quality
  }
  return 0
}
