// The public interface of `clusters/`.
export { awaitQuorum, awaitReplication } from './await-cluster.ts'
export type { ClusterMember, ClusterState } from './cluster-state.ts'
export { etcdAccess } from './etcd-access.ts'
export { readCluster } from './read-cluster.ts'
export { keepEtcdCredentials } from './store-etcd-credentials.ts'
