// Reads the engine's output while it pulls, imports or builds: a stream of JSON that ends and may contain an error.
import type Docker from 'dockerode'
import { Type } from 'typebox'
import { Value } from 'typebox/value'

const Line = Type.Object({ stream: Type.Optional(Type.String()), error: Type.Optional(Type.String()) })

/**
 * Resolves when the engine has finished.
 * @param reported receives the text of each line
 * @throws Error with the engine's error message
 */
export function follow(docker: Docker, stream: NodeJS.ReadableStream, reported: (text: string) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    docker.modem.followProgress(
      stream,
      (failed, lines: unknown[] | null) => {
        const error = failed ?? errorIn(lines ?? [])
        if (error === undefined) resolve()
        else reject(error)
      },
      (line: unknown) => {
        if (Value.Check(Line, line) && line.stream !== undefined) reported(line.stream)
      },
    )
  })
}

function errorIn(lines: unknown[]): Error | undefined {
  for (const line of lines) if (Value.Check(Line, line) && line.error !== undefined) return new Error(line.error)
  return undefined
}
