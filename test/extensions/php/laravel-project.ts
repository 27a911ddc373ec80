/** Laravel as Composer gets it: a repository of a project in the shape of `laravel/laravel` 8, and of Debian's own framework. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

const frameworkFolder = '/usr/share/php';

/** Why there is no Laravel; undefined where there is one. */
export const noLaravel: string | undefined = !existsSync('/usr/bin/composer')
    ? 'composer is not installed'
    : !existsSync(`${frameworkFolder}/Illuminate/Foundation/Application.php`)
      ? 'php-laravel-framework is not installed'
      : undefined;

/** What lies beside the framework and that it does not need: Composer's own parts, other languages, drivers of other services. */
const leftOut = [
    'php/Composer',
    'php/JsonSchema',
    'php/React',
    'php/Seld',
    'php/data',
    'php/8.2',
    'Lang/[a-df-z]*.php'
];

const version = '8.83.26';

const composerJson = {
    name: 'laravel/laravel',
    type: 'project',
    description: 'A project of the tests',
    license: 'MIT',
    require: { php: '^8.0', 'laravel/framework': '^8.83' },
    autoload: { 'psr-4': { 'App\\': 'app/' } },
    scripts: {
        'post-autoload-dump': [
            'Illuminate\\Foundation\\ComposerScripts::postAutoloadDump',
            '@php artisan package:discover'
        ],
        'post-root-package-install': [`@php -r "file_exists('.env') || copy('.env.example', '.env');"`],
        'post-create-project-cmd': ['@php artisan key:generate']
    }
};

const files: Readonly<Record<string, string>> = {
    'composer.json': JSON.stringify(composerJson),
    '.env.example': 'APP_NAME=Laravel\nAPP_ENV=local\nAPP_KEY=\nAPP_DEBUG=true\nAPP_URL=http://localhost\n',
    artisan: `#!/usr/bin/env php
<?php
define('LARAVEL_START', microtime(true));
require __DIR__ . '/vendor/autoload.php';
$app = require_once __DIR__ . '/bootstrap/app.php';
$kernel = $app->make(Illuminate\\Contracts\\Console\\Kernel::class);
$status = $kernel->handle($input = new Symfony\\Component\\Console\\Input\\ArgvInput, new Symfony\\Component\\Console\\Output\\ConsoleOutput);
$kernel->terminate($input, $status);
exit($status);
`,
    'public/index.php': `<?php
define('LARAVEL_START', microtime(true));
require __DIR__ . '/../vendor/autoload.php';
$app = require_once __DIR__ . '/../bootstrap/app.php';
$kernel = $app->make(Illuminate\\Contracts\\Http\\Kernel::class);
$response = $kernel->handle($request = Illuminate\\Http\\Request::capture())->send();
$kernel->terminate($request, $response);
`,
    'public/robots.txt': 'User-agent: *\n',
    'bootstrap/app.php': `<?php
$app = new Illuminate\\Foundation\\Application(dirname(__DIR__));
$app->singleton(Illuminate\\Contracts\\Http\\Kernel::class, App\\Http\\Kernel::class);
$app->singleton(Illuminate\\Contracts\\Console\\Kernel::class, App\\Console\\Kernel::class);
$app->singleton(Illuminate\\Contracts\\Debug\\ExceptionHandler::class, Illuminate\\Foundation\\Exceptions\\Handler::class);
return $app;
`,
    'bootstrap/cache/.gitignore': '*\n!.gitignore\n',
    'app/Http/Kernel.php': `<?php
namespace App\\Http;
class Kernel extends \\Illuminate\\Foundation\\Http\\Kernel {}
`,
    'app/Console/Kernel.php': `<?php
namespace App\\Console;
class Kernel extends \\Illuminate\\Foundation\\Console\\Kernel {
    protected function commands() { require base_path('routes/console.php'); }
}
`,
    'app/Providers/RouteServiceProvider.php': `<?php
namespace App\\Providers;
use Illuminate\\Support\\Facades\\Route;
class RouteServiceProvider extends \\Illuminate\\Foundation\\Support\\Providers\\RouteServiceProvider {
    public function boot() { $this->routes(fn () => Route::group([], base_path('routes/web.php'))); }
}
`,
    'config/app.php': `<?php return [
    'name' => env('APP_NAME'), 'env' => env('APP_ENV', 'production'), 'debug' => (bool) env('APP_DEBUG', false), 'url' => env('APP_URL'),
    'timezone' => 'UTC', 'locale' => 'en', 'fallback_locale' => 'en', 'key' => env('APP_KEY'), 'cipher' => 'AES-256-CBC',
    'providers' => [
        Illuminate\\Cache\\CacheServiceProvider::class, Illuminate\\Foundation\\Providers\\ConsoleSupportServiceProvider::class,
        Illuminate\\Database\\DatabaseServiceProvider::class, Illuminate\\Encryption\\EncryptionServiceProvider::class,
        Illuminate\\Filesystem\\FilesystemServiceProvider::class, Illuminate\\Foundation\\Providers\\FoundationServiceProvider::class,
        Illuminate\\Queue\\QueueServiceProvider::class, Illuminate\\Translation\\TranslationServiceProvider::class,
        Illuminate\\View\\ViewServiceProvider::class, App\\Providers\\RouteServiceProvider::class,
    ],
    'aliases' => [],
];
`,
    'config/cache.php': `<?php return ['default' => 'file', 'stores' => ['file' => ['driver' => 'file', 'path' => storage_path('framework/cache/data')]], 'prefix' => 'x'];`,
    'config/view.php': `<?php return ['paths' => [resource_path('views')], 'compiled' => storage_path('framework/views')];`,
    'config/queue.php': `<?php return ['default' => 'sync', 'connections' => ['sync' => ['driver' => 'sync']], 'failed' => ['driver' => 'null']];`,
    'config/logging.php': `<?php return ['default' => 'single', 'channels' => ['single' => ['driver' => 'single', 'path' => storage_path('logs/laravel.log'), 'level' => 'debug']]];`,
    'config/database.php': `<?php return ['default' => env('DB_CONNECTION', 'mysql'), 'migrations' => 'migrations', 'connections' => ['mysql' => [
    'driver' => 'mysql', 'host' => env('DB_HOST'), 'port' => env('DB_PORT'), 'unix_socket' => env('DB_SOCKET', ''), 'database' => env('DB_DATABASE'),
    'username' => env('DB_USERNAME'), 'password' => env('DB_PASSWORD'), 'charset' => 'utf8mb4', 'collation' => 'utf8mb4_unicode_ci', 'prefix' => '', 'strict' => true,
]]];
`,
    'database/migrations/2024_01_01_000000_create_words_table.php': `<?php
return new class extends Illuminate\\Database\\Migrations\\Migration {
    public function up() {
        Illuminate\\Support\\Facades\\Schema::create('words', function ($table) { $table->id(); $table->string('word'); });
        Illuminate\\Support\\Facades\\DB::table('words')->insert(['word' => 'from the database']);
    }
    public function down() { Illuminate\\Support\\Facades\\Schema::drop('words'); }
};
`,
    'resources/views/welcome.blade.php': `Laravel {{ app()->version() }} in {{ app()->environment() }} at {{ config('app.url') }}`,
    'routes/web.php': `<?php
use Illuminate\\Support\\Facades\\{Crypt, DB, Route};
Route::get('/', fn () => view('welcome'));
Route::get('/word/{name}', fn ($name) => Crypt::decrypt(Crypt::encrypt($name)) . ' ' . DB::table('words')->value('word'));
Route::get('/extra', fn () => class_exists('Acme\\\\Words') ? Acme\\Words::hello() : 'none');
Route::get('/broken', fn () => throw new Exception('a secret of the code'));
`,
    'routes/console.php': `<?php
use Illuminate\\Support\\Facades\\Artisan;
Artisan::command('queue:who {name}', function ($name) {
    $this->line("who " . json_encode([$name, posix_getuid(), getenv('HOME'), getenv('PORTICO_DATA_DIR'), trim(file_get_contents('/proc/self/comm'))]));
});
Artisan::command('queue:fails', function () { $this->line('it begins'); return 3; });
`,
    ...Object.fromEntries(
        ['app/public', 'framework/cache/data', 'framework/sessions', 'framework/views', 'logs'].map(
            (name) => [`storage/${name}/.gitignore`, '*\n!.gitignore\n']
        )
    )
};

/** A package of its own, for `composer require`. */
const words =
    '<?php\nnamespace Acme;\nclass Words { public static function hello() { return "hello of acme"; } }\n';

const packageOf = (more: object, url: string) => ({
    version: '1.0.0',
    ...more,
    dist: { type: 'tar', url: `file://${url}` }
});

/** Writes the repository into a folder, readable for every account, and gives its path. */
export function makeRepository(folder: string): string {
    const write = (path: string, text: string): void => {
        const file = join(folder, path);
        for (const each of ancestors(dirname(path))) {
            mkdirSync(join(folder, each), { recursive: true });
            chmodSync(join(folder, each), 0o755);
        }
        writeFileSync(file, text);
        chmodSync(file, 0o644);
    };
    Object.entries(files).forEach(([path, text]) => write(join('project', path), text));
    write('words/Words.php', words);
    const pack = (name: string, from: string): string => {
        const file = join(folder, `${name}.tar`);
        const left = leftOut.map((path) => `--exclude=${path}`);
        execFileSync('tar', ['-cf', file, ...left, '-C', dirname(from), basename(from)]);
        chmodSync(file, 0o644);
        return file;
    };
    const framework = {
        name: 'laravel/framework',
        version,
        // Debian's loaders find each other on the include path.
        'include-path': [''],
        autoload: { files: ['Illuminate/autoload.php'] }
    };
    write(
        'packages.json',
        JSON.stringify({
            packages: {
                'laravel/laravel': {
                    '8.6.12': packageOf(
                        { ...composerJson, version: '8.6.12' },
                        pack('project', join(folder, 'project'))
                    )
                },
                'laravel/framework': { [version]: packageOf(framework, pack('framework', frameworkFolder)) },
                'acme/words': {
                    '1.0.0': packageOf(
                        { name: 'acme/words', autoload: { classmap: ['Words.php'] } },
                        pack('words', join(folder, 'words'))
                    )
                }
            }
        })
    );
    return folder;
}

/** A path and all that it lies in, outermost first. */
function ancestors(path: string): readonly string[] {
    return path.split('/').reduce<string[]>((all, part) => [...all, join(all.at(-1) ?? '', part)], ['']);
}
