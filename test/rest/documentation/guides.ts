// Tutorials and how-to guides, and the pages about authentication and full-table operations.
import type { Page } from './page.ts'

const todos = [
  { id: 1, done: false, task: 'finish tutorial 0', due: null },
  { id: 2, done: false, task: 'pat self on back', due: null },
]
const done = [...todos, { id: 3, task: 'learn how to auth', due: null }].map((todo) => ({ ...todo, done: true }))
const tables = `
  create table todos (id serial primary key, done boolean not null default false, task text not null, due timestamptz);
  insert into todos (task) values ('finish tutorial 0'), ('pat self on back');
  alter table todos enable row level security;
  create policy all_read on todos for select using (true);
  create policy users_write on todos using (current_setting('app.role', true) = 'authenticated');`
const checkToken = `
  create function check_token() returns void language plpgsql as $$ begin
    if current_setting('request.jwt.claims', true)::json->>'email' = 'disgruntled@mycompany.com' then
      raise insufficient_privilege using hint = 'Nope, we are on to you';
    end if;
  end $$;`
const xml = { 'content-type': 'text/xml', accept: 'text/xml' }
const envelope = (body: string) =>
  `<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Header/><soapenv:Body>${body}` +
  '</soapenv:Body></soapenv:Envelope>'
const soap = `
  create domain "text/xml" as xml;
  create function my_soap_endpoint(xml) returns "text/xml" language plpgsql as $$ begin return xmlelement(
    name "soapenv:Envelope", xmlattributes('http://schemas.xmlsoap.org/soap/envelope/' as "xmlns:soapenv"),
    xmlelement(name "soapenv:Header"),
    xmlelement(name "soapenv:Body", xmlelement(name therequestbodywas, (xpath('/soapenv:Envelope/soapenv:Body', $1,
      array[array['soapenv', 'http://schemas.xmlsoap.org/soap/envelope/']]))[1]))); end $$;
  create function fraction_to_decimal(xml) returns "text/xml" language plpgsql as $$
    declare namespaces text[][] := array[array['soapenv', 'http://schemas.xmlsoap.org/soap/envelope/']];
    begin
      return ((xpath('//numerator/text()', $1, namespaces))[1]::text::int
        / (xpath('//denominator/text()', $1, namespaces))[1]::text::int)::text::xml;
    exception when others then
      return xmlelement(name "soapenv:Fault", xmlattributes('http://schemas.xmlsoap.org/soap/envelope/' as "xmlns:soapenv"),
        xmlelement(name faultcode, sqlstate), xmlelement(name faultstring, sqlerrm));
    end $$;`
const page = `
  create domain "text/html" as text;
  create table todos (id serial primary key, done boolean not null default false, task text not null);
  create function html_all_todos() returns text language sql as $$
    select '<ul>' || coalesce(string_agg('<li>' || task || case when done then ' (done)' else '' end || '</li>', '' order by id), '')
      || '</ul>' from todos $$;
  create function index() returns "text/html" language sql as $$ select '<!DOCTYPE html>' || html_all_todos() $$;
  create function add_todo(_task text) returns "text/html" language sql
    as $$ insert into todos (task) values (_task); select html_all_todos(); $$;
  create function html_editable_task(_id int) returns "text/html" language sql
    as $$ select '<input value="' || task || '">' from todos where id = _id $$;
  create function change_todo_state(_id int, _done boolean) returns "text/html" language sql
    as $$ update todos set done = _done where id = _id; select html_all_todos(); $$;
  create function change_todo_task(_id int, _task text) returns "text/html" language sql
    as $$ update todos set task = _task where id = _id; select html_all_todos(); $$;
  create function delete_todo(_id int) returns "text/html" language sql
    as $$ delete from todos where id = _id; select html_all_todos(); $$;`
const html = (text: string) => ({ status: 200, headers: { 'content-type': 'text/html' }, text })
const form = { accept: 'text/html', 'content-type': 'application/x-www-form-urlencoded' }
const login = {
  demanded: 'functions with the rights of their owner are not served',
  instead: { status: 404, body: { code: 'PGRST202' } },
}

export const guides: readonly Page[] = [
  {
    page: 'tutorials/tut0',
    read: '1396077',
    sections: [
      {
        section: 'A first collection',
        sql: tables,
        requests: [
          { request: 'GET /todos', response: { status: 200, body: todos } },
          {
            request: 'POST /todos',
            body: { task: 'do bad thing' },
            response: {
              status: 401,
              body: { hint: null, details: null, code: '42501', message: 'permission denied for table todos' },
            },
            here: {
              demanded: 'policies decide who may write, and not the rights of Postgres roles, so the message differs',
              instead: { status: 401, body: { hint: null, details: null, code: '42501' } },
            },
          },
        ],
      },
    ],
  },
  {
    page: 'tutorials/tut1',
    read: 'da0b887',
    sections: [
      {
        section: 'Tokens',
        sql: tables + checkToken,
        settings: { db_pre_request: 'check_token' },
        requests: [
          {
            request: 'POST /todos',
            as: { role: 'authenticated' },
            body: { task: 'learn how to auth' },
            response: { status: 201, text: '' },
            correction: 'with the role that signed-in users have here',
          },
          {
            request: 'PATCH /todos',
            as: { role: 'authenticated' },
            body: { done: true },
            response: { status: 204, text: '' },
          },
          { request: 'GET /todos', response: { status: 200, body: done } },
          {
            request: 'GET /todos',
            as: { role: 'authenticated', exp: 123456789 },
            response: {
              status: 401,
              body: { hint: null, details: null, code: 'PGRST303', message: 'JWT expired' },
            },
            correction: 'the code is that of the page of errors',
          },
          {
            request: 'PATCH /todos',
            as: { role: 'authenticated', email: 'disgruntled@mycompany.com' },
            body: { task: 'AAAHHHH!', done: false },
            response: {
              status: 403,
              body: { hint: 'Nope, we are on to you', details: null, code: '42501', message: 'insufficient_privilege' },
            },
          },
        ],
      },
    ],
  },
  {
    page: 'how-tos/create-soap-endpoint',
    read: 'd15e357',
    sections: [
      {
        section: 'XML',
        sql: soap,
        requests: [
          {
            request: 'POST /rpc/my_soap_endpoint',
            headers: xml,
            body: envelope('<mySOAPContent>My SOAP Content</mySOAPContent>'),
            response: { status: 200, text: /<therequestbodywas>[^]*My SOAP Content[^]*<\/therequestbodywas>/ },
          },
          {
            request: 'POST /rpc/fraction_to_decimal',
            headers: xml,
            body: envelope('<fraction><numerator>42</numerator><denominator>0</denominator></fraction>'),
            response: { status: 200, text: /<faultcode>22012<\/faultcode><faultstring>division by zero/ },
          },
        ],
      },
    ],
  },
  {
    page: 'how-tos/providing-html-content-using-htmx',
    read: 'b85ee95',
    sections: [
      {
        section: 'A page, and its forms',
        sql: page,
        requests: [
          {
            request: 'GET /rpc/index',
            headers: { accept: 'text/html' },
            response: html('<!DOCTYPE html><ul></ul>'),
          },
          {
            request: 'POST /rpc/add_todo',
            headers: form,
            body: '_task=One',
            response: html('<ul><li>One</li></ul>'),
          },
          {
            request: 'POST /rpc/change_todo_state',
            headers: form,
            body: '_id=1&_done=true',
            response: html('<ul><li>One (done)</li></ul>'),
          },
          {
            request: 'GET /rpc/html_editable_task?_id=1',
            headers: { accept: 'text/html' },
            response: html('<input value="One">'),
          },
          {
            request: 'POST /rpc/change_todo_task',
            headers: form,
            body: '_task=Two&_id=1',
            response: html('<ul><li>Two (done)</li></ul>'),
          },
          {
            request: 'POST /rpc/delete_todo',
            headers: form,
            body: '_id=1',
            response: html('<ul></ul>'),
          },
        ],
      },
    ],
  },
  {
    page: 'how-tos/sql-user-management',
    read: '55cc616',
    sections: [
      {
        section: 'Logins',
        sql: `
          create function login(email text, pass text) returns json language sql security definer
            as $$ select json_build_object('token', 'x') $$;`,
        requests: [
          {
            request: 'POST /rpc/login',
            body: { email: 'foo@bar.com', pass: 'foobar' },
            response: { status: 200, text: /^\{"token" ?: ?".+"\}$/ },
            here: login,
          },
        ],
      },
    ],
  },
  {
    page: 'how-tos/sql-user-management-using-postgres-users-and-passwords',
    read: '1a03ece',
    sections: [
      {
        section: 'Logins and rights',
        sql: `
          create function login(username text, password text) returns json language sql security definer
            as $$ select json_build_object('token', 'x') $$;
          create table foobar (foo int, bar text, baz float);
          alter table foobar enable row level security;
          create policy users on foobar using (current_setting('app.role', true) = 'authenticated');`,
        requests: [
          {
            request: 'POST /rpc/login',
            body: { username: 'foo', password: 'bar' },
            response: { status: 200, text: /^\{"token" ?: ?".+"\}$/ },
            here: login,
          },
          {
            request: 'GET /foobar',
            response: { status: 401 },
            here: {
              demanded: 'a caller whom no policy allows to read sees no rows, instead of an error',
              instead: { status: 200, body: [] },
            },
          },
          { request: 'GET /foobar', as: { role: 'authenticated' }, response: { status: 200, body: [] } },
        ],
      },
    ],
  },
  {
    page: 'references/auth',
    read: '560c511',
    sections: [
      {
        section: 'Tokens of clients',
        sql: 'create table foo (id integer primary key);',
        requests: [{ request: 'GET /foo', as: { role: 'authenticated' }, response: { status: 200, body: [] } }],
      },
    ],
  },
  {
    page: 'explanations/nginx',
    read: '4bb9822',
    sections: [
      {
        section: 'Alternate URL structure',
        sql: `
          create table people (id integer primary key);
          insert into people values (1), (2);`,
        requests: [
          {
            request: 'GET /people?id=eq.1',
            headers: { accept: 'application/vnd.pgrst.object+json' },
            response: { status: 200, body: { id: 1 } },
          },
        ],
      },
    ],
  },
  {
    page: 'integrations/pg-safeupdate',
    read: '2a95acd',
    sections: [
      {
        section: 'Full-table operations',
        sql: `
          create table logs (time date);
          insert into logs values ('1990-01-01'), ('1999-01-01');`,
        requests: [
          {
            request: 'DELETE /logs?time=lt.1991-08-06',
            response: { status: 204, text: '', stored: { 'select count(*)::int from logs': [{ count: 1 }] } },
          },
          {
            request: 'DELETE /logs',
            response: { status: 204, text: '', stored: { 'select count(*)::int from logs': [{ count: 0 }] } },
          },
        ],
      },
    ],
  },
]
