/** Another release of PHP: a program of its own name, which is PHP 8.2 with a setting by which scripts know it. */
import { chmodSync, rmSync, writeFileSync } from 'node:fs';

/** What `ini_get('user_agent')` says in the other release. */
export const mark = 'stand-in';

/** Its release. Each test file takes another one: they may run at the same time. */
export function makeRelease(release: string): Disposable & { readonly path: string } {
    const path = `/usr/local/sbin/php-fpm${release}`;
    const script = `#!/bin/sh
if [ "$1" = -v ]; then
    echo 'PHP ${release}.99 (fpm-fcgi) (a stand-in)'
    exit 0
fi
exec /usr/sbin/php-fpm8.2 -d user_agent=${mark} "$@"
`;
    writeFileSync(path, script);
    chmodSync(path, 0o755);
    return { path, [Symbol.dispose]: () => rmSync(path, { force: true }) };
}
