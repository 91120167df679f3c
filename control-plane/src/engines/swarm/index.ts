// The public interface of `engines/swarm/`.
export { createSwarmEngine } from './swarm-engine.ts'
