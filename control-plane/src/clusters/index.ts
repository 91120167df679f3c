// The public interface of `clusters/`.
export { awaitCluster, awaitQuorum, awaitReplication } from './await-cluster.ts'
export { type ClusterMember, type ClusterState, unknownCluster } from './cluster-state.ts'
export { etcdAccess } from './etcd-access.ts'
export { ClusterMemberBody, toMemberBody } from './member-body.ts'
export { readCluster } from './read-cluster.ts'
export { keepEtcdCredentials } from './store-etcd-credentials.ts'
export { switchOver } from './switch-over.ts'
