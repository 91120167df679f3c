// Transactions, errors, and observability.
import type { Page } from './page.ts'

const json = 'application/json; charset=utf-8'
const quota = { message: 'Payment Required', details: 'Quota exceeded', hint: 'Upgrade your plan' }

export const transactionsAndErrors: readonly Page[] = [
  {
    page: 'references/transactions',
    read: 'cccf8b7',
    sections: [
      {
        section: 'Access mode and settings',
        sql: `
          create sequence callcounter_count start 1;
          create view callcounter as select nextval('callcounter_count');
          create function request_settings() returns json stable language sql as $$ select json_build_object(
            'agent', current_setting('request.headers', true)::json->>'user-agent',
            'session', current_setting('request.cookies', true)::json->>'sessionId',
            'email', current_setting('request.jwt.claims', true)::json->>'email',
            'path', current_setting('request.path', true), 'method', current_setting('request.method', true)) $$;
          create function cached() returns integer language plpgsql as $$ begin
            perform set_config('response.headers',
              '[{"Cache-Control": "public"}, {"Cache-Control": "max-age=259200"}]', true);
            return 1; end $$;
          create function teapot() returns json language plpgsql as $$ begin
            perform set_config('response.status', '418', true);
            return json_build_object('message', 'The requested entity body is short and stout.',
              'hint', 'Tip it over and pour it out.'); end $$;
          create table people (id integer primary key);
          create function custom_headers() returns void language plpgsql as $$
            declare user_agent text := current_setting('request.headers', true)::json->>'user-agent';
            begin
              if user_agent similar to '%MSIE (6.0|7.0)%' then
                perform set_config('response.headers',
                  '[{"Cache-Control": "no-cache, no-store, must-revalidate"}]', false);
              end if;
            end $$;`,
        settings: { db_pre_request: 'custom_headers' },
        requests: [
          {
            request: 'GET /callcounter',
            response: {
              status: 405,
              body: {
                code: '25006',
                details: null,
                hint: null,
                message: 'cannot execute nextval() in a read-only transaction',
              },
            },
          },
          {
            request: 'GET /rpc/request_settings',
            as: { email: 'john@doe.com' },
            headers: { 'user-agent': 'x', cookie: 'sessionId=abc' },
            response: {
              status: 200,
              body: {
                agent: 'x',
                session: 'abc',
                email: 'john@doe.com',
                path: '/rpc/request_settings',
                method: 'GET',
              },
            },
          },
          {
            request: 'POST /rpc/cached',
            response: { status: 200, headers: { 'content-type': json, 'cache-control': /public, ?max-age=259200/ } },
          },
          {
            request: 'POST /rpc/teapot',
            response: {
              status: 418,
              body: {
                message: 'The requested entity body is short and stout.',
                hint: 'Tip it over and pour it out.',
              },
            },
            correction: 'the function is volatile, so the method is POST',
          },
          {
            request: 'GET /people',
            headers: { 'user-agent': 'Mozilla/4.01 (compatible; MSIE 6.0; Windows NT 5.1)' },
            response: { status: 200, headers: { 'cache-control': 'no-cache, no-store, must-revalidate' } },
          },
        ],
      },
    ],
  },
  {
    page: 'references/errors',
    read: '249b405, and a later version with PGRST303',
    sections: [
      {
        section: 'Errors',
        sql: `
          create table projects (id integer primary key, name text, note text);
          create table items (id integer primary key);
          create function just_fail() returns void language plpgsql as $$
            begin raise exception 'I refuse!' using detail = 'Pretty simple', hint = 'There is nothing you can do.'; end $$;
          create function payment() returns void language plpgsql as $$ begin
            raise sqlstate 'PT402' using message = 'Payment Required', detail = 'Quota exceeded', hint = 'Upgrade your plan';
          end $$;
          create function forbidden() returns void language plpgsql as $$ begin raise insufficient_privilege; end $$;
          create function headers(status integer) returns void language plpgsql as $$ begin
            raise sqlstate 'PGRST' using
              message = '{"code":"123","message":"Payment Required","details":"Quota exceeded","hint":"Upgrade your plan"}',
              detail = json_build_object(
                'status', status, 'status_text', 'Page Expired', 'headers', '{"X-Powered-By":"Nerd Rage"}'::json)::text;
          end $$;`,
        requests: [
          {
            request: 'POST /projects',
            body: { name: 'foo' },
            response: {
              status: 400,
              headers: { 'content-type': json },
              body: {
                code: '23502',
                details: 'Failing row contains (null, foo, null).',
                hint: null,
                message: 'null value in column "id" of relation "projects" violates not-null constraint',
              },
            },
            here: {
              demanded: 'of tables with row-level security, Postgres does not report the rows of errors',
              instead: { status: 400, body: { code: '23502', details: null } },
            },
          },
          {
            request: 'POST /rpc/nonexistent_function',
            body: {},
            response: {
              status: 404,
              headers: { 'content-type': json },
              body: {
                code: 'PGRST202',
                message:
                  'Could not find the function public.nonexistent_function without parameters in the schema cache',
              },
            },
            correction: 'the text is that of a function without arguments in the default schema',
          },
          {
            request: 'POST /rpc/just_fail',
            response: {
              status: 400,
              body: {
                message: 'I refuse!',
                details: 'Pretty simple',
                hint: 'There is nothing you can do.',
                code: 'P0001',
              },
            },
          },
          { request: 'POST /rpc/forbidden', response: { status: 401, body: { code: '42501' } } },
          {
            request: 'POST /rpc/payment',
            response: { status: 402, headers: { 'content-type': json }, body: { ...quota, code: 'PT402' } },
          },
          {
            request: 'POST /rpc/headers',
            body: { status: 402 },
            response: {
              status: 402,
              headers: { 'content-type': json, 'x-powered-by': 'Nerd Rage' },
              body: { ...quota, code: '123' },
            },
          },
          {
            request: 'POST /rpc/headers',
            body: { status: 419 },
            response: { status: 419, headers: { 'x-powered-by': 'Nerd Rage' }, body: { ...quota, code: '123' } },
          },
          {
            request: 'HEAD /itemsxx',
            response: { status: 404, headers: { 'proxy-status': 'PostgREST; error=PGRST205' } },
            correction: 'another error than a timeout, which would take long',
          },
          {
            request: 'GET /itemsxx',
            response: {
              status: 404,
              body: {
                code: 'PGRST205',
                message: "Could not find the table 'public.itemsxx' in the schema cache",
                details: null,
                hint: "Perhaps you meant the table 'public.items'",
              },
            },
            correction: 'the page exchanges details and hint',
          },
        ],
      },
    ],
  },
  {
    page: 'references/observability',
    read: '9ce9603',
    sections: [
      {
        section: 'Headers and plans',
        sql: 'create table users (id integer primary key, name text);',
        requests: [
          {
            request: 'GET /users',
            headers: { 'x-request-id': '123' },
            response: { status: 200, headers: { 'x-request-id': '123' } },
            here: {
              demanded: 'the gateway sends the header, and these requests are sent to the runtime',
              instead: { status: 200, headers: { 'x-request-id': undefined } },
            },
          },
          {
            request: 'GET /users',
            response: {
              status: 200,
              headers: { 'server-timing': /jwt;dur=.*parse;dur=.*plan;dur=.*transaction;dur=.*response;dur=/ },
            },
          },
          {
            request: 'HEAD /users',
            response: { status: 200, headers: { server: /^postgrest\// } },
            here: {
              demanded: 'this is not PostgREST, and a version would help an attacker',
              instead: { status: 200, headers: { server: undefined } },
            },
          },
          {
            request: 'GET /users?select=name&order=id',
            as: 'service',
            headers: { accept: 'application/vnd.pgrst.plan' },
            response: { status: 200, text: /^Aggregate {2}\(cost=.*\)\n/ },
            correction: 'plans are enabled for the service role only',
          },
          {
            request: 'GET /users?select=name&order=id',
            as: 'service',
            headers: { accept: 'application/vnd.pgrst.plan+json' },
            response: { status: 200, text: /^\[\s*\{\s*"Plan": ?\{\s*"Node Type": ?"Aggregate"/ },
            correction: 'plans are enabled for the service role only',
          },
          {
            request: 'GET /users',
            as: 'service',
            headers: { accept: 'application/vnd.pgrst.plan; options=analyze|wal' },
            response: { status: 200, text: /^Aggregate .*\(actual / },
            correction: 'plans are enabled for the service role only',
          },
        ],
      },
    ],
  },
]
