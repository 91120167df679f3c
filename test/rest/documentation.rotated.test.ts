// Sends every request in PostgREST's documentation, and compares the response with the documented one. This file also
// writes the block in docs/rest.md (TENANTRY_WRITE_DOCS=1).
import t from 'tap'
import { checkDocumented } from '#test/support/documented.ts'
import { startRuntime } from '#test/support/runtime.ts'
import type { DocumentedRequest } from './documentation/page.ts'
import { pages } from './documentation/pages.ts'
import { compare, prepare, send } from './documentation/run-section.ts'

t.test('The documentation of PostgREST', async (t) => {
  const runtime = await startRuntime(t, { rest: { allowsRollback: true, sendsTiming: true } })
  for (const { page, sections } of pages) {
    t.test(page, async (t) => {
      const tenant = await runtime.addTenant()
      for (const section of sections) {
        await t.test(section.section, async (t) => {
          await prepare(tenant, section)
          for (const documented of section.requests) {
            const { request, response, here } = documented
            const given = await send(tenant, documented)
            const found = await compare(tenant, documented, response, given)
            if (here === undefined) t.same(found, [], request)
            else t.not(found.length, 0, `${request} still differs: ${reasonOf(documented)}`)
            if (here !== undefined && 'instead' in here)
              t.same(await compare(tenant, documented, here.instead, given), [], `${request} has the stated response`)
          }
        })
      }
    })
  }

  t.test('The score in the documentation matches the pages', async (t) => {
    await checkDocumented(t, 'rest.md', 'test/rest/documentation.rotated.test.ts', score())
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})

function score(): string {
  const all = pages.flatMap(({ sections }) => sections.flatMap(({ requests }) => requests))
  const differing = all.filter(({ here }) => here !== undefined)
  const reasons = Map.groupBy(differing, reasonOf)
  return [
    `Of the ${all.length} requests in the documentation of PostgREST 14, ${all.length - differing.length} get the `,
    `documented response here, ${differing.length} do not:\n\n`,
    '| why not | requests |\n| --- | --- |\n',
    ...[...reasons].map(([reason, requests]) => `| ${reason} | ${requests.length} |\n`),
  ].join('')
}

function reasonOf({ here }: DocumentedRequest): string {
  if (here === undefined) return ''
  return 'demanded' in here ? here.demanded : `missing: ${here.missing}`
}
