/** What each framework is known by, and how it is built and run. */
import type { BuildPlan } from './plan.ts';

/** Files at the top of a project, and what `package.json` says. */
export interface Checkout {
    readonly files: ReadonlySet<string>;
    readonly scripts: Readonly<Record<string, string>>;
    readonly dependencies: ReadonlySet<string>;
    /** The file that Node runs by itself. */
    readonly main: string | null;
}

/** A preset: when it holds, and what is then done. */
export interface Framework {
    readonly id: string;
    readonly title: string;
    readonly matches: (checkout: Checkout) => boolean;
    readonly plan: (checkout: Checkout) => Omit<BuildPlan, 'framework'>;
}

const none = { install: null, commands: [], output: null, command: null, port: null, env: {}, cache: [] };
const production = { NODE_ENV: 'production' };

/** The package manager by its lock file: how it installs what the lock says, and how it runs a script. */
function nodeTools({ files }: Checkout): {
    readonly install: readonly string[];
    readonly run: readonly string[];
} {
    if (files.has('bun.lock') || files.has('bun.lockb')) {
        return { install: ['bun', 'install', '--frozen-lockfile'], run: ['bun', 'run'] };
    }
    if (files.has('pnpm-lock.yaml')) {
        return { install: ['pnpm', 'install', '--frozen-lockfile'], run: ['pnpm', 'run'] };
    }
    if (files.has('yarn.lock')) {
        return { install: ['yarn', 'install', '--frozen-lockfile'], run: ['yarn', 'run'] };
    }
    return {
        install: files.has('package-lock.json')
            ? ['npm', 'ci', '--no-audit', '--no-fund']
            : ['npm', 'install', '--no-audit', '--no-fund'],
        run: ['npm', 'run']
    };
}

function buildOf(checkout: Checkout): readonly (readonly string[])[] {
    return 'build' in checkout.scripts ? [[...nodeTools(checkout).run, 'build']] : [];
}

/** A site that a bundler of Node makes. */
function bundled(
    id: string,
    title: string,
    dependency: string,
    output: string,
    cache: readonly string[] = []
): Framework {
    return {
        id,
        title,
        matches: ({ dependencies }) => dependencies.has(dependency),
        plan: (checkout) => ({
            ...none,
            runtime: 'static',
            install: nodeTools(checkout).install,
            commands: buildOf(checkout),
            output,
            cache
        })
    };
}

/** A server that a framework of Node builds. */
function served(
    id: string,
    title: string,
    dependency: string,
    command: readonly string[],
    cache: readonly string[] = []
): Framework {
    return {
        id,
        title,
        matches: ({ dependencies }) => dependencies.has(dependency),
        plan: (checkout) => ({
            ...none,
            runtime: 'process',
            install: nodeTools(checkout).install,
            commands: buildOf(checkout),
            command,
            env: { ...production, HOST: '127.0.0.1' },
            cache
        })
    };
}

/** A program of a language that is not Node. */
function program(id: string, title: string, files: readonly string[], plan: Partial<BuildPlan>): Framework {
    return {
        id,
        title,
        matches: (checkout) => files.some((name) => checkout.files.has(name)),
        plan: () => ({ ...none, runtime: 'process', ...plan })
    };
}

const venv = '.venv/bin/python';

/** The presets, the first that matches holds. */
export const frameworks: readonly Framework[] = [
    served(
        'next',
        'Next.js',
        'next',
        ['node', 'node_modules/next/dist/bin/next', 'start', '--hostname', '127.0.0.1'],
        ['.next/cache']
    ),
    served('nuxt', 'Nuxt', 'nuxt', ['node', '.output/server/index.mjs']),
    served('remix', 'Remix', '@remix-run/serve', [
        'node',
        'node_modules/@remix-run/serve/dist/cli.js',
        'build/server/index.js'
    ]),
    served('sveltekit', 'SvelteKit', '@sveltejs/adapter-node', ['node', 'build']),
    served('nest', 'NestJS', '@nestjs/core', ['node', 'dist/main.js']),
    bundled('astro', 'Astro', 'astro', 'dist'),
    bundled('gatsby', 'Gatsby', 'gatsby', 'public', ['.cache']),
    bundled('docusaurus', 'Docusaurus', '@docusaurus/core', 'build'),
    bundled('vitepress', 'VitePress', 'vitepress', '.vitepress/dist'),
    bundled('eleventy', 'Eleventy', '@11ty/eleventy', '_site'),
    bundled('angular', 'Angular', '@angular/core', 'dist'),
    bundled('react-scripts', 'Create React App', 'react-scripts', 'build'),
    bundled('vite', 'Vite', 'vite', 'dist'),
    {
        id: 'node',
        title: 'Node.js',
        matches: ({ files, scripts, main }) =>
            files.has('package.json') && ('start' in scripts || main !== null),
        plan: (checkout) => ({
            ...none,
            runtime: 'process',
            install: checkout.dependencies.size > 0 ? nodeTools(checkout).install : null,
            commands: buildOf(checkout),
            command: nodeCommand(checkout),
            env: production
        })
    },
    {
        id: 'node-static',
        title: 'A static site that Node builds',
        matches: ({ files, scripts }) => files.has('package.json') && 'build' in scripts,
        plan: (checkout) => ({
            ...none,
            runtime: 'static',
            install: checkout.dependencies.size > 0 ? nodeTools(checkout).install : null,
            commands: buildOf(checkout),
            output: 'dist'
        })
    },
    program('deno', 'Deno', ['deno.json', 'deno.jsonc'], { command: ['deno', 'task', 'start'] }),
    program('django', 'Django', ['manage.py'], {
        install: ['sh', '-c', `python3 -m venv --copies .venv && ${venv} -m pip install -r requirements.txt`],
        commands: [[venv, 'manage.py', 'collectstatic', '--noinput']],
        command: ['sh', '-c', `exec ${venv} manage.py runserver --noreload 127.0.0.1:$PORT`],
        env: { PYTHONUNBUFFERED: '1' }
    }),
    program('python', 'Python', ['requirements.txt'], {
        install: ['sh', '-c', `python3 -m venv --copies .venv && ${venv} -m pip install -r requirements.txt`],
        command: [venv, 'main.py'],
        env: { PYTHONUNBUFFERED: '1' }
    }),
    program('python-plain', 'Python without packages', ['main.py', 'app.py', 'pyproject.toml'], {
        command: ['python3', 'main.py'],
        env: { PYTHONUNBUFFERED: '1' }
    }),
    program('go', 'Go', ['go.mod'], {
        commands: [['go', 'build', '-o', 'bin/app', '.']],
        command: ['bin/app'],
        env: { GOCACHE: '/cache/go-build', GOMODCACHE: '/cache/go-mod', GOFLAGS: '-modcacherw' }
    }),
    program('rust', 'Rust', ['Cargo.toml'], {
        commands: [['sh', '-c', 'cargo install --path . --root .']],
        command: ['sh', '-c', 'exec ./bin/*'],
        env: { CARGO_HOME: '/cache/cargo', CARGO_TARGET_DIR: '/cache/target' }
    }),
    program('rails', 'Ruby', ['Gemfile'], {
        install: ['bundle', 'install', '--deployment'],
        command: ['sh', '-c', 'exec bundle exec puma -b tcp://127.0.0.1:$PORT'],
        env: { RACK_ENV: 'production', RAILS_ENV: 'production' }
    }),
    program('maven', 'Java with Maven', ['pom.xml'], {
        commands: [['mvn', '--batch-mode', '-Dmaven.repo.local=/cache/m2', 'package']],
        command: ['sh', '-c', 'exec java -jar target/*.jar --server.port=$PORT']
    }),
    program('gradle', 'Java with Gradle', ['build.gradle', 'build.gradle.kts'], {
        commands: [['sh', './gradlew', '--no-daemon', 'build']],
        command: ['sh', '-c', 'exec java -jar build/libs/*.jar --server.port=$PORT'],
        env: { GRADLE_USER_HOME: '/cache/gradle' }
    }),
    program('php', 'PHP', ['composer.json', 'index.php'], {
        install: [
            'sh',
            '-c',
            'if [ -f composer.json ]; then exec composer install --no-dev --no-interaction; fi'
        ],
        command: ['sh', '-c', 'if [ -d public ]; then cd public; fi; exec php -S 127.0.0.1:$PORT']
    }),
    {
        id: 'static',
        title: 'Static files',
        matches: ({ files }) => files.has('index.html'),
        plan: () => ({ ...none, runtime: 'static', output: '.' })
    },
    {
        id: 'static-public',
        title: 'Static files in a folder',
        matches: ({ files }) => files.has('public') || files.has('dist'),
        plan: ({ files }) => ({ ...none, runtime: 'static', output: files.has('public') ? 'public' : 'dist' })
    }
];

/** `npm start` puts a shell between the sandbox and the program, so a plain command of the script is run itself. */
function nodeCommand({ scripts, main, files }: Checkout): readonly string[] {
    const { start } = scripts;
    if (start !== undefined && /^node [A-Za-z0-9_./ =:@-]+$/.test(start)) {
        return start.split(/ +/);
    }
    return start === undefined
        ? ['node', main ?? (files.has('server.js') ? 'server.js' : 'index.js')]
        : ['npm', 'start'];
}
