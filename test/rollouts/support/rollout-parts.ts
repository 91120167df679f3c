// Builds rollouts, tenants and moved tenants, with times relative to the rollout's begin.
import type { MovedTenant, Rollout, RolloutSubject } from '#control-plane/rollouts/rollout.ts'

const begin = Date.parse('2026-03-01T12:00:00.000Z')
export const at = (seconds: number) => new Date(begin + seconds * 1000)

export const rollout = (more: Partial<Rollout> = {}): Rollout => ({
  id: 'r',
  region: 'local',
  component: 'runtime',
  image: 'new:1',
  imageId: 'new',
  canary: undefined,
  waveSize: 8,
  soakSeconds: 10,
  deadlineSeconds: 60,
  state: 'running',
  wave: 0,
  tenants: [],
  error: undefined,
  createdAt: at(0),
  finishedAt: undefined,
  ...more,
})
export const subject = (id: string, more: Partial<RolloutSubject> = {}): RolloutSubject => ({
  id,
  isolation: 'database-per-tenant',
  desired: 'active',
  status: 'ready',
  generation: 1,
  observedGeneration: 1,
  image: 'old',
  operations: [],
  ...more,
})
export const moved = (tenantId: string, more: Partial<MovedTenant> = {}): MovedTenant => ({
  tenantId,
  from: 'old',
  wave: 1,
  state: 'moving',
  generation: 2,
  movedAt: at(0),
  wellSince: undefined,
  ...more,
})
