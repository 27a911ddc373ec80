/** Pools and directives that suit a use, for people to begin with. */
import type { DirectiveValues } from './directives.ts';
import { type Pool, usualPool } from './pool.ts';

/** What suits a use. */
export interface Preset {
    readonly name: string;
    readonly title: string;
    readonly description: string;
    readonly pool: Pool;
    readonly values: DirectiveValues;
}

/** The presets, the smallest first. */
export const presets: readonly Preset[] = [
    {
        name: 'small',
        title: 'Small site',
        description: 'A few pages with few visitors: no worker runs while there are no requests',
        pool: usualPool,
        values: {}
    },
    {
        name: 'wordpress',
        title: 'WordPress',
        description: 'Larger uploads, more input variables for its menus, longer tasks of its dashboard',
        pool: { ...usualPool, maxChildren: 10, requestSeconds: 120 },
        values: {
            memory_limit: '256M',
            max_execution_time: '120',
            max_input_vars: '3000',
            post_max_size: '64M',
            upload_max_filesize: '64M',
            'opcache.max_accelerated_files': '20000'
        }
    },
    {
        name: 'shop',
        title: 'Shop',
        description:
            'Steady visitors and large pages: some workers always wait, slow requests are written down',
        pool: {
            ...usualPool,
            mode: 'dynamic',
            maxChildren: 30,
            startServers: 6,
            minSpare: 4,
            maxSpare: 12,
            requestSeconds: 120,
            slowSeconds: 5
        },
        values: {
            memory_limit: '512M',
            max_execution_time: '120',
            max_input_vars: '5000',
            post_max_size: '64M',
            upload_max_filesize: '64M',
            'opcache.memory_consumption': '256',
            'opcache.interned_strings_buffer': '32',
            'opcache.max_accelerated_files': '65000'
        }
    },
    {
        name: 'api',
        title: 'API',
        description:
            'Short requests that come all the time: a fixed number of workers, code that changes only by a deployment',
        pool: {
            ...usualPool,
            mode: 'static',
            maxChildren: 16,
            maxRequests: 5_000,
            requestSeconds: 30,
            slowSeconds: 2
        },
        values: {
            memory_limit: '128M',
            'opcache.validate_timestamps': 'Off',
            'opcache.max_accelerated_files': '20000'
        }
    }
];
