// Tenants with users whose rows, tokens and names carry canaries, and the rights to see them.
import { query } from '#test/support/postgres.ts'
import type { TestRuntime, TestTenant } from '#test/support/runtime.ts'

/** The callers who may see a canary: its user, all callers of the tenant, all users of the tenant, only the service. */
export const kinds = ['private', 'public', 'signed', 'service'] as const
export type Kind = (typeof kinds)[number]
export const pattern = /cn-(\d+)-(\d+)-([a-z]+)-[0-9a-f]{12}/g

const owned = [
  { name: 'id', type: 'uuid', primary: true },
  { name: 'owner', type: 'string' },
  { name: 'text', type: 'string', required: true },
  { name: 'rank', type: 'number' },
  { name: 'data', type: 'json' },
]
/** Each collection contains canaries of one kind. */
export const collections: Record<string, { kind: Kind; policy: object }> = {
  notes: { kind: 'private', policy: { type: 'ownership', owner_field: 'owner' } },
  posts: { kind: 'public', policy: { type: 'public_read', owner_field: 'owner' } },
  board: { kind: 'signed', policy: { type: 'authenticated' } },
  ledger: { kind: 'service', policy: { type: 'service' } },
}
/**
 * Other access to rows and to the context: a relation, a table of another schema of the interface, functions that return what
 * they know, and one before each request that leaves the caller's secret in the session and in a header.
 */
const more = `
  create table remarks (id uuid primary key default gen_random_uuid(), note uuid references notes (id) on delete cascade,
    owner text not null default nullif(current_setting('app.user_id', true), ''), text text not null);
  alter table remarks enable row level security;
  create policy own on remarks using (owner = nullif(current_setting('app.user_id', true), ''))
    with check (owner = nullif(current_setting('app.user_id', true), ''));
  create policy service on remarks using (current_setting('app.role', true) = 'service_role');
  create table "own.things" (id uuid primary key default gen_random_uuid(),
    owner text not null default nullif(current_setting('app.user_id', true), ''), text text not null);
  alter table "own.things" enable row level security;
  create policy own on "own.things" using (owner = nullif(current_setting('app.user_id', true), ''))
    with check (owner = nullif(current_setting('app.user_id', true), ''));
  create policy service on "own.things" using (current_setting('app.role', true) = 'service_role');
  create function before_request() returns void language plpgsql as $$ begin
    perform set_config('app.left', coalesce(nullif(current_setting('request.jwt.claims', true), '')::json ->> 'secret', ''), false);
    perform set_config('response.headers', json_build_array(json_build_object('X-Left', current_setting('app.left')))::text, false);
  end $$;
  create function mine() returns setof notes language sql stable as 'select * from notes';
  create function context() returns text language sql stable as $$
    select concat_ws(' ', current_setting('app.tenant_id', true), current_setting('app.user_id', true),
      current_setting('request.jwt.claims', true), current_setting('app.left', true), current_user) $$;
  create function complain(word text) returns void language plpgsql as $$ begin
    raise exception 'rejected: %', word
      using errcode = 'P0001', detail = context(), hint = (select string_agg(text, ', ') from notes); end $$`

export interface Member {
  tenant: TestTenant
  /** The numbers of the tenant and the user; user 0 is the service, and undefined is an anonymous caller. */
  at: number
  user: number | undefined
  headers: Record<string, string>
  sub: string
}

/** Adds tenants with the collections, each with its users, its service and a caller without a key. */
export async function addMembers(
  runtime: TestRuntime,
  { tenants, users }: { tenants: number; users: number },
  canary: (at: number, user: number, kind: Kind) => string,
): Promise<Member[]> {
  const members: Member[] = []
  for (let at = 0; at < tenants; at++) {
    const tenant = await runtime.addTenant({ name: `tenant${at}` })
    for (const [name, { policy }] of Object.entries(collections)) {
      const fields = name === 'ledger' || name === 'board' ? owned.filter((field) => field.name !== 'owner') : owned
      const { status, text } = await tenant.request('POST', '/rest/v1/schemas', {
        as: 'service',
        body: { name, fields, rls_policy: policy },
      })
      if (status !== 201) throw new Error(text)
    }
    // Functions need the tables, which the first reload creates; the second one serves the functions.
    for (const sql of ['', more]) {
      if (sql !== '') await query(tenant.home.adminUrl, sql)
      // Half of the tenants have a function before each request.
      const before = sql !== '' && at % 2 === 1 ? { db_pre_request: 'before_request' } : {}
      const { status, text } = await tenant.request('POST', '/admin/reload-schemas', {
        as: 'service',
        body: { settings: { db_schemas: ['public', 'own'], ...before } },
      })
      if (status !== 200) throw new Error(text)
    }
    members.push(
      { tenant, at, user: undefined, headers: {}, sub: '' },
      { tenant, at, user: 0, headers: tenant.as('service'), sub: '' },
    )
    for (let user = 1; user <= users; user++) {
      const sub = canary(at, user, 'public')
      members.push({
        tenant,
        at,
        user,
        headers: { authorization: `Bearer ${tenant.token(sub, { secret: canary(at, user, 'private') })}` },
        sub,
      })
    }
  }
  return members
}

export const maySee = (member: Member, at: number, user: number, kind: Kind) => {
  if (at !== member.at) return false
  return (
    member.user === 0 || member.user === user || kind === 'public' || (kind === 'signed' && member.user !== undefined)
  )
}
