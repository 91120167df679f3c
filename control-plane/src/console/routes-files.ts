// Serves the files of the web console: its page at `/`, and scripts and styles whose names contain their hash.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import fastifyStatic from '@fastify/static'
import { ConfigurationError } from '@tenantry/contract'
import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import type { Api } from '../http/api.ts'
import { ControlError } from '../platform/errors.ts'

/** Only files of the console itself run and load, and no page of another origin can show it in a frame. */
const consolePolicy =
  "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
const page = 'index.html'

/** The dependencies of the console's files. */
export interface ConsoleFilesDeps {
  /** The directory of the bundled console. */
  consoleFiles: string
}

/** Adds the console's page and its files. @throws ConfigurationError if the console is not built */
export async function addConsoleFiles(app: Api, { consoleFiles }: ConsoleFilesDeps): Promise<void> {
  if (!existsSync(join(consoleFiles, page)))
    throw new ConfigurationError('The web console is not built. Run "npm run setup".')
  await app.register(fastifyStatic, { root: consoleFiles, serve: false, preCompressed: true, cacheControl: false })
  const send = (reply: FastifyReply, file: string, cacheControl: string) =>
    reply.header('content-security-policy', consolePolicy).header('cache-control', cacheControl).sendFile(file)

  app.get('/', { config: { scopes: 'public' }, schema: { hide: true } }, (_request, reply) =>
    send(reply, page, 'no-cache'),
  )
  app.get(
    '/console/:file',
    { config: { scopes: 'public' }, schema: { hide: true, params: Type.Object({ file: Type.String() }) } },
    (request, reply) => {
      const { file } = request.params
      if (!/^[\w-]+(?:\.[\w-]+)+$/.test(file) || !existsSync(join(consoleFiles, file)))
        throw new ControlError('NOT_FOUND', 'The console has no such file.')
      return send(reply, file, 'public, max-age=31536000, immutable')
    },
  )
}
