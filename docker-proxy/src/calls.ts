// The calls that our own client makes (engines/docker/), and with each what is asked of it. All others are refused. Pure.
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import {
  containersInShort,
  imageInShort,
  only,
  ownContainer,
  ownNetwork,
  ownNetworks,
  ownVolume,
  ownVolumes,
  type Shown,
} from './answers.ts'
import { checkedContainer } from './container-rules.ts'
import type { Claim } from './claims.ts'
import type { DoorRules } from './door-rules.ts'
import {
  checkedCommand,
  checkedConnection,
  checkedDisconnection,
  checkedLimits,
  checkedNetwork,
  checkedStart,
  checkedVolume,
  type Checked,
} from './object-rules.ts'
import { Refused } from './refused.ts'
import { readTarget, type Target } from './request-target.ts'

export interface Call {
  method: string
  version: string | undefined
  segments: readonly string[]
  query: Readonly<Record<string, string>>
  /** The object at `segments[1]`; its id takes the place of its name. */
  subject: Claim | undefined
  /** Networks that the query names. */
  networks: readonly string[]
  /** `none`: a body of nothing, or of `{}`. */
  body: 'none' | 'archive' | { check: (body: unknown) => Checked }
  /** A JSON answer as it may be shown; bytes as they come; events; or the connection itself. */
  answer: Shown | 'bytes' | 'events' | 'connection'
}

type Test = RegExp | ((text: string, rules: DoorRules) => boolean)

interface Rule {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** `*` is the subject's name. */
  path: string
  subject?: (name: string) => Claim
  query?: Readonly<Record<string, Test>>
  /** Must all be there. */
  needs?: readonly string[]
  body?: 'archive' | ((body: unknown, rules: DoorRules, target: Target) => Checked)
  answer?: Call['answer']
}

const yes = /^true$/
const flag = /^(?:true|false)$/
const whole = /^\d{1,9}$/

const usable = (name: string): Claim => ({ kind: 'container', name, may: 'be used' })
const startable = (name: string): Claim => ({ kind: 'container', name, may: 'start' })
const helper = (name: string): Claim => ({ kind: 'container', name, may: 'hold files' })
const network = (name: string): Claim => ({ kind: 'network', name })
const volume = (name: string): Claim => ({ kind: 'volume', name, may: 'be removed' })
const command = (name: string): Claim => ({ kind: 'exec', name })

const nothing: Shown = () => ({})

const rules: readonly Rule[] = [
  { method: 'GET', path: '/_ping', answer: 'bytes' },
  { method: 'GET', path: '/version', answer: only('Version', 'ApiVersion', 'MinAPIVersion') },
  {
    method: 'GET',
    path: '/info',
    answer: only('Name', 'MemTotal', 'NCPU', 'CgroupVersion', 'SecurityOptions', 'Warnings', 'DockerRootDir'),
  },
  { method: 'GET', path: '/images/*/json', answer: imageInShort },
  { method: 'GET', path: '/events', query: { filters: wantsKnownEvents }, needs: ['filters'], answer: 'events' },
  { method: 'GET', path: '/system/df', query: { type: /^volume$/ }, needs: ['type'], answer: ownVolumes },

  {
    method: 'GET',
    path: '/containers/json',
    query: { all: yes, filters: (text, own) => asksForOwn(text, own) || asksForMembers(text) },
    needs: ['filters'],
    answer: containersInShort,
  },
  {
    method: 'POST',
    path: '/containers/create',
    query: { name: /./ },
    needs: ['name'],
    body: (body, own, { query: { name = '' } }) => checkedContainer(name, body, own),
    answer: only('Id', 'Warnings'),
  },
  { method: 'GET', path: '/containers/*/json', answer: ownContainer },
  { method: 'POST', path: '/containers/*/start', subject: startable, answer: nothing },
  { method: 'POST', path: '/containers/*/unpause', subject: startable, answer: nothing },
  { method: 'POST', path: '/containers/*/stop', subject: usable, query: { t: whole }, answer: nothing },
  { method: 'POST', path: '/containers/*/update', subject: usable, body: checkedLimits, answer: only('Warnings') },
  { method: 'DELETE', path: '/containers/*', subject: usable, query: { force: flag, v: flag }, answer: nothing },
  {
    method: 'GET',
    path: '/containers/*/logs',
    subject: usable,
    query: { stdout: yes, stderr: yes, timestamps: yes, follow: flag, tail: whole, since: /^\d{1,12}(?:\.\d{1,9})?$/ },
    answer: 'bytes',
  },
  {
    method: 'GET',
    path: '/containers/*/stats',
    subject: usable,
    query: { stream: /^false$/, 'one-shot': yes },
    needs: ['stream'],
    answer: only('cpu_stats', 'memory_stats'),
  },
  {
    method: 'GET',
    path: '/containers/*/archive',
    subject: helper,
    query: { path: /^\/tenantry\/files$/ },
    needs: ['path'],
    answer: 'bytes',
  },
  {
    method: 'PUT',
    path: '/containers/*/archive',
    subject: helper,
    query: { path: /^\/tenantry$/ },
    needs: ['path'],
    body: 'archive',
    answer: nothing,
  },
  { method: 'POST', path: '/containers/*/exec', subject: startable, body: checkedCommand, answer: only('Id') },
  { method: 'POST', path: '/exec/*/start', subject: command, body: checkedStart, answer: 'connection' },
  { method: 'GET', path: '/exec/*/json', subject: command, answer: only('Running', 'ExitCode') },

  {
    method: 'GET',
    path: '/networks',
    query: { filters: (text, own) => asksForOwn(text, own) || asksForName(text) },
    needs: ['filters'],
    answer: ownNetworks,
  },
  { method: 'GET', path: '/networks/*', answer: ownNetwork },
  { method: 'POST', path: '/networks/create', body: checkedNetwork, answer: only('Id', 'Warning') },
  { method: 'POST', path: '/networks/*/connect', subject: network, body: checkedConnection, answer: nothing },
  {
    method: 'POST',
    path: '/networks/*/disconnect',
    body: (body, _own, { segments }) => checkedDisconnection(body, segments[1] ?? ''),
    answer: nothing,
  },
  { method: 'DELETE', path: '/networks/*', subject: network, answer: nothing },

  {
    method: 'GET',
    path: '/volumes',
    needs: ['filters'],
    answer: ownVolumes,
    query: { filters: (text, own) => asksForOwn(text, own) || asksForNamesakes(text) },
  },
  { method: 'GET', path: '/volumes/*', answer: ownVolume },
  { method: 'POST', path: '/volumes/create', body: checkedVolume, answer: ownVolume },
  { method: 'DELETE', path: '/volumes/*', subject: volume, answer: nothing },
]

/** Without them the Engine's answer may mean something else, or there is none. */
const withoutVersion = ['/_ping', '/version']

/** @throws Refused */
export function readCall(method: string | undefined, url: string | undefined, own: DoorRules): Call {
  const target = readTarget(url ?? '')
  const path = `/${target.segments.join('/')}`
  const rule = rules.find((candidate) => candidate.method === method && matches(candidate.path, target))
  if (rule === undefined) throw new Refused(`${method ?? ''} ${path} is no call of Tenantry's`)
  if (target.version === undefined && !withoutVersion.includes(rule.path))
    throw new Refused('the path names no API version')
  checkQuery(rule, target.query, own)
  const { body } = rule
  return {
    method: rule.method,
    version: target.version,
    segments: target.segments,
    query: target.query,
    subject: rule.subject?.(target.segments[1] ?? ''),
    networks: readFilter(target.query['filters'] ?? '{}')['network'] ?? [],
    body: body === undefined ? 'none' : body === 'archive' ? body : { check: (given) => body(given, own, target) },
    answer: rule.answer ?? 'bytes',
  }
}

/** Names hold no slash, but for images' references. */
const nameText = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/

function matches(pattern: string, { segments }: Target): boolean {
  const wanted = pattern.slice(1).split('/')
  if (wanted.length !== segments.length) return false
  return wanted.every((part, at) => {
    const segment = segments[at] ?? ''
    return part === '*' ? wanted[0] === 'images' || nameText.test(segment) : part === segment
  })
}

function checkQuery({ query = {}, needs = [] }: Rule, given: Readonly<Record<string, string>>, own: DoorRules): void {
  for (const [name, text] of Object.entries(given)) {
    const test = Object.hasOwn(query, name) ? query[name] : undefined
    const passes = test instanceof RegExp ? test.test(text) : test?.(text, own)
    if (passes !== true) throw new Refused(`the query's ${name} is not one of Tenantry's`)
  }
  const missing = needs.find((name) => !Object.hasOwn(given, name))
  if (missing !== undefined) throw new Refused(`the query has no ${missing}`)
}

const Filter = Type.Record(Type.String(), Type.Array(Type.String(), { minItems: 1 }))

function readFilter(text: string): Readonly<Record<string, readonly string[]>> {
  let filter: unknown
  try {
    filter = JSON.parse(text)
  } catch (cause) {
    throw new Refused('the filter is no JSON', { cause })
  }
  if (!Value.Check(Filter, filter)) throw new Refused('the filter is not understood')
  return filter
}

function hasOnly(filter: object, ...names: readonly string[]): boolean {
  return Object.keys(filter).every((name) => names.includes(name))
}

function asksForOwn(text: string, { installation }: DoorRules): boolean {
  const filter = readFilter(text)
  const { label = [] } = filter
  const isStack = (one: string) => /^tenantry\.stack=[a-z0-9_-]+$/.test(one)
  return (
    hasOnly(filter, 'label') &&
    label.includes(`tenantry.installation=${installation}`) &&
    label.every((one) => one === `tenantry.installation=${installation}` || isStack(one))
  )
}

/** Of the members only what everybody on a network sees is shown. */
function asksForMembers(text: string): boolean {
  const filter = readFilter(text)
  return hasOnly(filter, 'network') && (filter['network'] ?? []).length > 0
}

function asksForName(text: string): boolean {
  const filter = readFilter(text)
  return hasOnly(filter, 'name') && (filter['name'] ?? []).length === 1
}

/** Volumes named like ours, which the Engine makes without a label in the place of one that is gone. */
function asksForNamesakes(text: string): boolean {
  const filter = readFilter(text)
  return hasOnly(filter, 'name') && (filter['name'] ?? []).every((name) => /^tenantry-(?:[a-z0-9_-]+-)?$/.test(name))
}

/** None of those that tell what runs inside of containers. */
const actions = [
  'create',
  'start',
  'die',
  'stop',
  'kill',
  'oom',
  'pause',
  'unpause',
  'restart',
  'rename',
  'update',
  'health_status',
  'destroy',
  'connect',
  'disconnect',
  'remove',
]

function wantsKnownEvents(text: string): boolean {
  const filter = readFilter(text)
  const { type = [], event = [] } = filter
  const isWithin = (given: readonly string[], known: readonly string[]) =>
    given.length > 0 && given.every((one) => known.includes(one))
  return (
    hasOnly(filter, 'type', 'event') && isWithin(type, ['container', 'network', 'volume']) && isWithin(event, actions)
  )
}
