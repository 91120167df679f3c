// Prepares a section's objects in a tenant's home, and sends its requests.
import { differences } from './compare.ts'
import type { DocumentedRequest, DocumentedResponse, Section } from './page.ts'
import { query } from '#test/support/postgres.ts'
import type { ApiResponse, TestTenant } from '#test/support/runtime.ts'

/** Runs the section's statements as the tenant's login, allows everything that they do not restrict, and reloads. */
export async function prepare(tenant: TestTenant, { sql, settings }: Section): Promise<void> {
  if (sql === undefined) return
  await query(tenant.home.adminUrl, sql)
  await query(tenant.home.adminUrl, allowAll)
  const { status, text } = await tenant.request('POST', '/admin/reload-schemas', {
    as: 'service',
    body: { settings: { db_schemas: null, db_pre_request: null, db_root_spec: null, ...settings } },
  })
  if (status !== 200) throw new Error(`the reload returned ${status}: ${text}`)
}

/** Sends the request as PostgREST's clients do: with the name of the schema. */
export async function send(
  tenant: TestTenant,
  { request, as, headers, body }: DocumentedRequest,
): Promise<ApiResponse> {
  const [method = '', ...path] = request.split(' ')
  const profile = ['GET', 'HEAD'].includes(method) ? 'accept-profile' : 'content-profile'
  const authorization = typeof as === 'object' ? { authorization: `Bearer ${tenant.token('someone', as)}` } : {}
  return tenant.request(method, `/rest/v1${encoded(path.join(' '))}`, {
    ...(as === 'service' ? { as } : {}),
    headers: { [profile]: 'public', ...authorization, ...headers },
    ...(body === undefined ? {} : { body }),
  })
}

/** Returns how a response differs from the recorded one, and what the tables contain instead of the recorded rows. */
export async function compare(
  tenant: TestTenant,
  { request }: DocumentedRequest,
  wanted: DocumentedResponse,
  given: ApiResponse,
): Promise<string[]> {
  const found = differences(request, wanted, given)
  for (const [sql, rows] of Object.entries(wanted.stored ?? {})) {
    const stored = await tenant.rows(sql)
    if (JSON.stringify(stored) !== JSON.stringify(rows)) found.push(`${sql} returns ${JSON.stringify(stored)}`)
  }
  return found
}

function encoded(path: string): string {
  return path.replaceAll(/[^!-~]/gu, encodeURIComponent)
}

/** Tables without row-level security are not served, and neither are views with the rights of their owner. */
const allowAll = `
do $$
declare relation record;
begin
  for relation in
    select c.oid::regclass as name, c.relkind, c.relrowsecurity from pg_class c
    where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p', 'v')
      and pg_has_role(c.relowner, 'usage') and not exists (select from pg_policy p where p.polrelid = c.oid)
  loop
    if relation.relkind = 'v' then
      execute format('alter view %s set (security_invoker = true)', relation.name);
    elsif not relation.relrowsecurity then
      execute format('alter table %s enable row level security', relation.name);
      execute format('create policy allow_all on %s using (true) with check (true)', relation.name);
    end if;
  end loop;
end $$`
