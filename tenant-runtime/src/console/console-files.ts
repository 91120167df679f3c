// Serves the files of the developers' console: its page at `/console`, and scripts and styles whose names contain their hash.
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { ConfigurationError } from '@tenantry/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { RuntimeError } from '../errors.ts'

/** Only files of the same origin run and load, and no page can show the console in a frame. `blob:` shows files of the tenant. */
const policy =
  "default-src 'self'; img-src 'self' blob:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
}
const page = 'index.html'

/** The files of the console by their names, each also compressed: `app-….js`, `app-….js.gz`, `app-….js.br`. */
export type ConsoleFiles = ReadonlyMap<string, Buffer>

/** Reads the bundled console. @throws ConfigurationError if it is not built */
export async function readConsoleFiles(directory: string): Promise<ConsoleFiles> {
  const names = await readdir(directory).catch((): string[] => [])
  if (!names.includes(page)) throw new ConfigurationError('The developers\' console is not built. Run "npm run setup".')
  return new Map(
    await Promise.all(
      names.map(async (name): Promise<[string, Buffer]> => [name, await readFile(join(directory, name))]),
    ),
  )
}

/** Adds the page and the files. */
export function addConsoleFiles(app: FastifyInstance, files: ConsoleFiles): void {
  const send = (request: FastifyRequest, reply: FastifyReply, name: string, cacheControl: string) => {
    const type = types[extname(name)]
    if (type === undefined || !files.has(name)) throw new RuntimeError('NOT_FOUND', 'The console has no such file.')
    const { content, encoding } = compressed(files, name, request.headers['accept-encoding'])
    if (encoding !== undefined) void reply.header('content-encoding', encoding)
    return reply
      .type(type)
      .headers({
        'cache-control': cacheControl,
        'content-security-policy': policy,
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
        vary: 'Accept-Encoding',
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
      })
      .send(content)
  }
  app.get('/console', { config: { access: 'public' } }, (request, reply) => send(request, reply, page, 'no-cache'))
  app.get('/console/', { config: { access: 'public' } }, (request, reply) =>
    reply.redirect(`${request.basePath}/console`, 308),
  )
  app.get<{ Params: { file: string } }>('/console/:file', { config: { access: 'public' } }, (request, reply) =>
    send(request, reply, request.params.file, 'public, max-age=31536000, immutable'),
  )
}

function compressed(
  files: ConsoleFiles,
  name: string,
  accepted = '',
): { content: Buffer | undefined; encoding?: string } {
  for (const [suffix, encoding] of [
    ['.br', 'br'],
    ['.gz', 'gzip'],
  ] as const) {
    const content = files.get(name + suffix)
    if (content !== undefined && accepted.split(',').some((one) => one.split(';', 1)[0]?.trim() === encoding))
      return { content, encoding }
  }
  return { content: files.get(name) }
}
