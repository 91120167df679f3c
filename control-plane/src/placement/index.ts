// The exports of `placement/` that other modules may import.
export { chooseHosts, crowded, kindOf, type HostCapacity, type ServiceNeed } from './choose-hosts.ts'
export type { HostState } from './host-state.ts'
export { refitHosts, type Reserved } from './refit-hosts.ts'
export { createPlacementStore, placementOf, type PlacementStore } from './store.ts'
