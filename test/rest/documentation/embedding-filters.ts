// Embedding: parameters of relations, filters of the parent's rows, and spreads.
import { films } from './films.ts'
import type { Page } from './page.ts'

const [lumiere, dickson, castle] = [
  'Workers Leaving The Lumière Factory In Lyon',
  'The Dickson Experimental Sound Film',
  'The Haunted Castle',
]
const jehanne = { first_name: 'Jehanne', last_name: "d'Alcy" }
const ofQuentin = 'select=first_name,...films(film_titles:title,film_years:year)&first_name=like.Quentin*'

export const embeddingFilters: Page = {
  page: 'references/api/resource_embedding',
  read: 'bee862c, and a later version with spread to-many relationships',
  sections: [
    {
      section: 'Top-level filtering',
      sql: films,
      requests: [
        {
          request: 'GET /films?select=title,actors(first_name,last_name)&actors.first_name=eq.Jehanne',
          response: {
            status: 200,
            body: [
              { title: lumiere, actors: [] },
              { title: dickson, actors: [] },
              { title: castle, actors: [jehanne] },
            ],
          },
        },
        {
          request: 'GET /films?select=title,actors!inner(first_name,last_name)&actors.first_name=eq.Jehanne',
          response: { status: 200, body: [{ title: castle, actors: [jehanne] }] },
        },
        {
          request: 'GET /films?select=title,actors()&actors.first_name=eq.Jehanne&actors=not.is.null',
          response: { status: 200, body: [{ title: castle }] },
        },
        {
          request: 'GET /films?select=title,actors(*)&actors=not.is.null',
          response: { status: 200, body: [{ title: castle, actors: [{ id: 1, ...jehanne }] }] },
        },
        {
          request: 'GET /films?select=title,directors(last_name)&order=directors(last_name).desc',
          response: {
            status: 200,
            body: [
              { title: castle, directors: { last_name: 'Méliès' } },
              { title: lumiere, directors: { last_name: 'Lumière' } },
              { title: dickson, directors: { last_name: 'Dickson' } },
            ],
          },
        },
        {
          request:
            ('GET /films?select=title,...directors(director_first_name:first_name, director_last_name:last_name)' +
              '&title=like.*Workers*') as 'GET /',
          response: {
            status: 200,
            body: [{ title: lumiere, director_first_name: 'Louis', director_last_name: 'Lumière' }],
          },
        },
      ],
    },
    {
      section: 'Parameters of relations',
      sql: `
        truncate films, actors, directors, roles, technical_specs, competitions, nominations restart identity;
        insert into films (id, title) values (1, 'Duck Soup'), (2, 'Horse Feathers');
        insert into actors values (1, 'Tom', 'Marx'), (2, 'Ann', 'Allen'), (3, 'Tom', 'Adams'), (4, 'Bo', 'Zed');
        insert into roles values (1, 1, 'Chico'), (1, 2, 'Gummo'), (1, 3, 'Harpo'), (1, 4, 'Rufus'), (2, 4, 'Zeppo');
        insert into competitions values (1, 'Oscars', 1990), (2, 'Globes', 1991);
        insert into nominations values (1, 1, 1), (2, 1, 2), (2, 2, 3);`,
      requests: [
        {
          request: 'GET /actors?select=roles(character,films(title,year))',
          response: {
            status: 200,
            body: [{ roles: [{ character: 'Chico', films: { title: 'Duck Soup', year: null } }] }, '..'],
          },
        },
        {
          request: 'GET /films?select=*,actors(*)&actors.order=last_name,first_name',
          response: {
            status: 200,
            body: [
              film(1, 'Duck Soup', {
                actors: [
                  actor(3, 'Tom', 'Adams'),
                  actor(2, 'Ann', 'Allen'),
                  actor(1, 'Tom', 'Marx'),
                  actor(4, 'Bo', 'Zed'),
                ],
              }),
              film(2, 'Horse Feathers', { actors: [actor(4, 'Bo', 'Zed')] }),
            ],
          },
        },
        {
          request: 'GET /films?select=*,roles(*)&roles.character=in.(Chico,Harpo,Groucho)',
          response: {
            status: 200,
            body: [
              film(1, 'Duck Soup', { roles: [role(1, 1, 'Chico'), role(1, 3, 'Harpo')] }),
              film(2, 'Horse Feathers', { roles: [] }),
            ],
          },
        },
        {
          request: 'GET /films?select=*,roles(*)&roles.or=(character.eq.Gummo,character.eq.Zeppo)',
          response: {
            status: 200,
            body: [
              film(1, 'Duck Soup', { roles: [role(1, 2, 'Gummo')] }),
              film(2, 'Horse Feathers', { roles: [role(2, 4, 'Zeppo')] }),
            ],
          },
        },
        {
          request: 'GET /films?select=*,actors(*)&actors.limit=10&actors.offset=2',
          response: {
            status: 200,
            body: [
              film(1, 'Duck Soup', { actors: [actor(3, 'Tom', 'Adams'), actor(4, 'Bo', 'Zed')] }),
              film(2, 'Horse Feathers', { actors: [] }),
            ],
          },
        },
        {
          request:
            'GET /films?select=*,90_comps:competitions(name),91_comps:competitions(name)&90_comps.year=eq.1990&91_comps.year=eq.1991',
          response: {
            status: 200,
            body: [
              film(1, 'Duck Soup', { '90_comps': [{ name: 'Oscars' }], '91_comps': [{ name: 'Globes' }] }),
              film(2, 'Horse Feathers', { '90_comps': [], '91_comps': [{ name: 'Globes' }] }),
            ],
          },
        },
        {
          request:
            'GET /films?select=*,roles(*,actors(*))&roles.actors.order=last_name&roles.actors.first_name=like.*Tom*',
          response: {
            status: 200,
            body: [
              film(2, 'Horse Feathers', { roles: [{ ...role(2, 4, 'Zeppo'), actors: null }] }),
              film(1, 'Duck Soup', {
                roles: [
                  { ...role(1, 1, 'Chico'), actors: actor(1, 'Tom', 'Marx') },
                  { ...role(1, 2, 'Gummo'), actors: null },
                  { ...role(1, 3, 'Harpo'), actors: actor(3, 'Tom', 'Adams') },
                  { ...role(1, 4, 'Rufus'), actors: null },
                ],
              }),
            ],
          },
        },
      ],
    },
    {
      section: 'Null filtering, and filters across relations',
      sql: `
        truncate films, actors, directors, roles, competitions, nominations, technical_specs;
        insert into directors values (1, 'Quentin', 'Tarantino'), (2, 'John', 'Carpenter'), (3, 'Robert', 'Eggers');
        insert into films (id, director_id, title, year) values
          (1, 1, 'Pulp Fiction', 1994), (2, 2, 'The Thing', 1982), (3, 3, 'The Lighthouse', 2019), (4, null, 'Unknown', null);
        insert into actors values (1, 'John', 'Travolta'), (2, 'Samuel', 'Jackson'), (3, 'Uma', 'Thurman'), (4, 'Willem', 'Dafoe');
        insert into roles values (1, 1, 'Vincent Vega'), (1, 2, 'Jules Winnfield'), (1, 3, 'Mia Wallace'), (3, 4, 'Thomas Wake');
        insert into competitions values (1, 'Oscars', 1995);
        insert into nominations values (1, 1, 1);`,
      requests: [
        {
          request: 'GET /films?select=title,nominations()&nominations=is.null',
          response: {
            status: 200,
            body: [{ title: 'The Thing' }, { title: 'The Lighthouse' }, { title: 'Unknown' }],
          },
        },
        {
          request: 'GET /films?select=title,actors(*),directors(*)&or=(actors.is.null,directors.is.null)',
          response: {
            status: 200,
            body: [
              { title: 'The Thing', actors: [], directors: { id: 2, first_name: 'John', last_name: 'Carpenter' } },
              { title: 'Unknown', actors: [], directors: null },
            ],
          },
        },
        {
          request:
            ('GET /films?select=title,actors(),directors()&directors.first_name=eq.John&actors.first_name=eq.John' +
              '&or=(directors.not.is.null,actors.not.is.null)') as 'GET /',
          response: { status: 200, body: [{ title: 'Pulp Fiction' }, { title: 'The Thing' }, '..'] },
        },
        {
          request: ('GET /films?select=title,act:actors(),dir:directors(),actors(first_name),directors(first_name)' +
            '&dir.first_name=eq.John&act.first_name=eq.John&or=(dir.not.is.null,act.not.is.null)') as 'GET /',
          response: {
            status: 200,
            body: [
              {
                title: 'Pulp Fiction',
                actors: [{ first_name: 'John' }, { first_name: 'Samuel' }, { first_name: 'Uma' }, '..'],
                directors: { first_name: 'Quentin' },
              },
              '..',
            ],
          },
        },
        {
          request:
            'GET /films?select=title,actors:roles(character,...actors(first_name,last_name))&title=like.*Lighthouse*',
          response: {
            status: 200,
            body: [
              {
                title: 'The Lighthouse',
                actors: [{ character: 'Thomas Wake', first_name: 'Willem', last_name: 'Dafoe' }],
              },
            ],
          },
        },
      ],
    },
    {
      section: 'Spread of to-many relations',
      sql: `
        truncate films, actors, directors, roles, competitions, nominations, technical_specs;
        insert into directors values (1, 'Quentin', 'Tarantino');
        insert into films (id, director_id, title, year) values (1, 1, 'Pulp Fiction', 1994), (2, 1, 'Reservoir Dogs', 1992);
        insert into technical_specs (film_id, runtime) values (1, '02:29:00'), (2, '01:39:00');
        insert into actors (id) values (1), (2);
        insert into roles values (1, 1, 'Vincent Vega'), (1, 2, 'Mia Wallace'), (2, 1, 'Mr. White'), (2, 2, 'Mr. Pink');
        create table clients (id integer primary key, name text);
        create table projects (id integer primary key, name text, client_id integer references clients);
        insert into clients values (1, 'Microsoft'), (2, 'Apple');
        insert into projects values
          (1, 'Windows 7', 1), (2, 'Windows 10', 1), (3, 'IOS', 2), (4, 'OSX', 2), (5, 'Orphan', null);`,
      requests: [
        {
          request: `GET /directors?${ofQuentin}`,
          response: {
            status: 200,
            body: [
              { first_name: 'Quentin', film_titles: ['Pulp Fiction', 'Reservoir Dogs'], film_years: [1994, 1992] },
            ],
          },
        },
        {
          request: `GET /directors?${ofQuentin}&films.order=year`,
          response: {
            status: 200,
            body: [
              { first_name: 'Quentin', film_titles: ['Reservoir Dogs', 'Pulp Fiction'], film_years: [1992, 1994] },
            ],
          },
        },
        {
          request: 'GET /projects?select=id,name,...clients(id,name)',
          response: {
            status: 200,
            text:
              '[{"id":1,"name":"Windows 7","id":1,"name":"Microsoft"},{"id":2,"name":"Windows 10","id":1,"name":"Microsoft"},' +
              '{"id":3,"name":"IOS","id":2,"name":"Apple"},{"id":4,"name":"OSX","id":2,"name":"Apple"},' +
              '{"id":5,"name":"Orphan","id":null,"name":null}]',
          },
        },
        {
          request: 'GET /projects?select=id,name,...clients(client_id:id,client_name:name)',
          response: {
            status: 200,
            body: [{ id: 1, name: 'Windows 7', client_id: 1, client_name: 'Microsoft' }, '..'],
          },
        },
        {
          request: ('GET /directors?select=first_name,...films(film_titles:title,film_years:year,' +
            '...technical_specs(film_runtimes:runtime),...roles(film_characters:character))' +
            '&first_name=like.Quentin*&films.order=year&films.roles.order=character') as 'GET /',
          response: {
            status: 200,
            body: [
              {
                first_name: 'Quentin',
                film_titles: ['Reservoir Dogs', 'Pulp Fiction'],
                film_years: [1992, 1994],
                film_runtimes: ['01:39:00', '02:29:00'],
                film_characters: [
                  ['Mr. Pink', 'Mr. White'],
                  ['Mia Wallace', 'Vincent Vega'],
                ],
              },
            ],
          },
        },
      ],
    },
  ],
}

function film(id: number, title: string, related: object): object {
  return { id, director_id: null, title, year: null, rating: null, language: null, ...related }
}

function actor(id: number, first_name: string, last_name: string): object {
  return { id, first_name, last_name }
}

function role(film_id: number, actor_id: number, character: string): object {
  return { film_id, actor_id, character }
}
