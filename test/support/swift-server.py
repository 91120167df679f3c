# Runs all of OpenStack Swift in one process: account, container and object server with one directory as their disk, and a
# proxy that speaks S3. Arguments: directory, port of the proxy, user of the account `test`, secret. Prints a line when it
# listens.
import os
import sys
from time import time as now

import eventlet

eventlet.monkey_patch()

from eventlet import listen, wsgi
from swift.common import utils

directory, port, user, secret = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]


def at(name):
    return os.path.join(directory, name)


def write(name, text):
    with open(at(name), 'w') as file:
        file.write(text)


# Swift reads this file when it is imported, from a system directory by default.
write('swift.conf', '[swift-hash]\nswift_hash_path_suffix = test\n[storage-policy:0]\nname = one\ndefault = yes\n')
utils.SWIFT_CONF_FILE = at('swift.conf')
utils.HASH_PATH_PREFIX = utils.HASH_PATH_SUFFIX = b''
utils.validate_configuration()

from swift.account.server import AccountController
from swift.common.ring import RingBuilder
from swift.common.storage_policy import reload_storage_policies
from swift.common.wsgi import loadapp
from swift.container.server import ContainerController
from swift.obj.server import ObjectController

try:
    from swift.common.http_protocol import SwiftHttpProtocol
except ImportError:
    from swift.common.wsgi import SwiftHttpProtocol

reload_storage_policies()

# The objects need not outlive the test.
os.fsync = os.fdatasync = lambda descriptor: None


class Cache:
    """Replaces memcached for Swift."""

    def __init__(self):
        self.values = {}

    def get(self, key, raise_on_error=False):
        value, until = self.values.get(key, (None, 0))
        return value if until > now() else None

    def set(self, key, value, serialize=True, time=0, min_compress_len=0, raise_on_error=False):
        self.values[key] = (value, now() + (time or 60))

    def delete(self, key, server_key=None):
        self.values.pop(key, None)


def serve(socket, app):
    return eventlet.spawn(wsgi.server, socket, app, protocol=SwiftHttpProtocol, log_output=False)


servers = {'account': AccountController, 'container': ContainerController, 'object': ObjectController}
os.makedirs(at('devices/disk'), exist_ok=True)
# With the default timeouts, a listing that misses an update would wait for a daemon that does not run here.
timeouts = {'container_update_timeout': '60', 'node_timeout': '60', 'conn_timeout': '30'}
settings = {'devices': at('devices'), 'swift_dir': directory, 'mount_check': 'false', 'fallocate_reserve': '0', 'disable_fallocate': 'true', **timeouts}
listeners = {kind: listen(('127.0.0.1', 0)) for kind in servers}
for kind, listener in listeners.items():
    ring = RingBuilder(1, 1, 0)
    ring.add_dev({'region': 1, 'zone': 1, 'weight': 1, 'ip': '127.0.0.1', 'port': listener.getsockname()[1], 'device': 'disk'})
    ring.rebalance()
    ring.get_ring().save(at(kind + '.ring.gz'))
for kind, server in servers.items():
    serve(listeners[kind], server(settings))

write('proxy.conf', '''
[DEFAULT]
swift_dir = %s
[pipeline:main]
pipeline = catch_errors s3api tempauth slo proxy-server
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:s3api]
use = egg:swift#s3api
[filter:tempauth]
use = egg:swift#tempauth
user_test_%s = %s .admin
[filter:slo]
use = egg:swift#slo
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
node_timeout = %s
conn_timeout = %s
''' % (directory, user, secret, timeouts['node_timeout'], timeouts['conn_timeout']))
proxy = loadapp(at('proxy.conf'), global_conf={'log_name': 'proxy'})
cache = Cache()


def with_cache(environment, start_response):
    environment['swift.cache'] = cache
    return proxy(environment, start_response)


proxy_server = serve(listen(('127.0.0.1', port)), with_cache)
print('listening', flush=True)
proxy_server.wait()
