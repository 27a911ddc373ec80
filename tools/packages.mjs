/**
 * The programs of the system that Portico runs, and the Debian package that brings each.
 *
 * `for` says who needs it: `start` (the panel itself), `test` (a test cannot run without it; what `start` needs, tests
 * need too) or `bench`. A `command` with a path is a file that the package brings. `variable` names the environment variable that points to another binary. `unit` is the service
 * that the package would start by itself and that must not run, because the panel starts its own.
 * `files` are written before the package is installed, where they are missing.
 */
export const SYSTEM_PACKAGES = [
    {
        command: 'caddy',
        package: 'caddy',
        for: 'start',
        variable: 'PORTICO_CADDY',
        unit: 'caddy.service',
        what: 'the proxy engine'
    },
    { command: 'pebble', package: 'pebble', for: 'test', what: 'the certificate authority of the tests' },
    { command: 'openssl', package: 'openssl', for: 'test', what: 'what makes certificates for the tests' },
    {
        command: 'named',
        package: 'bind9',
        for: 'test',
        unit: 'named.service',
        what: 'the name server of the tests'
    },
    {
        command: 'lego',
        package: 'lego',
        for: 'test',
        what: 'the types of DNS providers beside rfc2136; the panel works without it and says what is missing'
    },
    {
        command: 'promtool',
        package: 'prometheus',
        for: 'test',
        variable: 'PORTICO_PROMTOOL',
        unit: 'prometheus.service',
        what: 'what reads the exposition of the monitoring as Prometheus does, and takes what it sends'
    },
    {
        command: 'php-fpm8.2',
        package: 'php8.2-fpm',
        for: 'test',
        unit: 'php8.2-fpm.service',
        what: 'the PHP of the sites that tests make'
    },
    {
        command: 'php8.2',
        package: 'php8.2-cli',
        for: 'test',
        what: 'the PHP on the command line, for the tools of sites'
    },
    {
        command: '/usr/share/php8.2-mysql/mysql/mysqli.ini',
        package: 'php8.2-mysql',
        for: 'test',
        what: "PHP's client of MariaDB, for the tests of WordPress"
    },
    {
        command: 'composer',
        package: 'composer',
        for: 'test',
        what: 'what makes the projects of sites in tests'
    },
    {
        command: '/usr/share/php/Illuminate/Foundation/Application.php',
        package: 'php-laravel-framework',
        for: 'test',
        what: 'the framework of the sites of Laravel that tests make'
    },
    {
        command: 'mariadbd',
        package: 'mariadb-server',
        for: 'test',
        unit: 'mariadb.service',
        what: 'the MariaDB server of the tests'
    },
    {
        command: 'mariadb-backup',
        package: 'mariadb-backup',
        for: 'test',
        what: 'copies of running MariaDB servers, from which tests go back in time'
    },
    {
        command: 'pg_dump',
        package: 'postgresql',
        for: 'test',
        unit: 'postgresql.service',
        what: 'the PostgreSQL server of the tests, with its clients'
    },
    {
        command: 'crontab',
        package: 'cron',
        for: 'test',
        unit: 'cron.service',
        what: 'the crontabs that tests take in'
    },
    { command: 'restic', package: 'restic', for: 'test', what: 'the engine of the extension backup' },
    { command: 'rclone', package: 'rclone', for: 'test', what: 'remotes of backups, and servers for them' },
    {
        command: 'bsdtar',
        package: 'libarchive-tools',
        for: 'test',
        what: 'archives that Node cannot read; the file manager works without it and says what is missing'
    },
    { command: 'xz', package: 'xz-utils', for: 'test', what: 'archives packed by xz' },
    { command: 'bzip2', package: 'bzip2', for: 'test', what: 'archives packed by bzip2' },
    { command: 'ssh', package: 'openssh-client', for: 'test', what: 'backups over SFTP' },
    {
        command: 'sshd',
        package: 'openssh-server',
        for: 'test',
        unit: 'ssh.service',
        what: 'the SFTP server of the tests'
    },
    {
        command: 'systemd-cat',
        package: 'systemd',
        for: 'test',
        what: 'what keeps services of plugins in a container of the tests'
    },
    {
        command: 'nft',
        package: 'nftables',
        unit: 'nftables.service',
        for: 'test',
        what: 'the firewall of the tests'
    },
    {
        command: 'fail2ban-server',
        package: 'fail2ban',
        unit: 'fail2ban.service',
        for: 'test',
        what: 'what bans addresses by logs, whose bans the firewall lists and lifts in tests'
    },
    {
        command: 'cscli',
        package: 'crowdsec',
        unit: 'crowdsec.service',
        for: 'test',
        // The package registers the machine at crowdsec.net unless this file holds something.
        files: { '/etc/crowdsec/online_api_credentials.yaml': '# This machine is registered nowhere.\n' },
        what: 'what decides about addresses, whose bans the firewall lists and lifts in tests'
    },
    { command: 'ip', package: 'iproute2', for: 'test', what: 'what makes network namespaces for the tests' },
    { command: 'ping', package: 'iputils-ping', for: 'test', what: 'what checks of the kind ping run' },
    {
        command: 'smartctl',
        package: 'smartmontools',
        for: 'test',
        unit: 'smartmontools.service',
        what: 'what asks the drives of the machine in tests'
    },
    {
        command: 'dockerd',
        package: 'docker.io',
        for: 'test',
        unit: 'docker.service',
        what: 'the container engine of the tests'
    },
    {
        command: 'podman',
        package: 'podman',
        for: 'test',
        unit: 'podman.socket',
        what: 'the second container engine of the tests'
    },
    { command: 'runc', package: 'runc', for: 'test', what: 'what that engine runs containers with' },
    {
        command: '/usr/lib/podman/netavark',
        package: 'netavark',
        for: 'test',
        what: 'the networks of that engine'
    },
    {
        command: '/usr/lib/podman/aardvark-dns',
        package: 'aardvark-dns',
        for: 'test',
        what: 'the names in those networks'
    },
    {
        command: '/usr/libexec/podman/catatonit',
        package: 'catatonit',
        for: 'test',
        what: 'the first process in containers of that engine that ask for one'
    },
    {
        command: 'docker-registry',
        package: 'docker-registry',
        for: 'test',
        unit: 'docker-registry.service',
        what: 'the registry of images of the tests'
    },
    { command: 'git', package: 'git', for: 'test', what: 'the repositories of the tests' },
    {
        command: 'bwrap',
        package: 'bubblewrap',
        for: 'test',
        what: 'the sandbox of builds and releases'
    },
    {
        command: 'busybox',
        package: 'busybox-static',
        for: 'test',
        what: 'what the images of the tests are made of'
    },
    {
        command: 'minisign',
        package: 'minisign',
        for: 'test',
        what: 'what signs the catalogues of the tests'
    },
    {
        command: 'chromium',
        package: 'chromium',
        for: 'test',
        variable: 'PORTICO_CHROMIUM',
        what: 'the browser of the tests of the pages'
    },
    {
        command: 'firefox-esr',
        package: 'firefox-esr',
        for: 'test',
        variable: 'PORTICO_FIREFOX',
        what: 'the second browser of those tests'
    },
    { command: 'wrk', package: 'wrk', for: 'bench', what: 'the load of the benches' },
    {
        command: 'nginx',
        package: 'nginx-light',
        for: 'bench',
        unit: 'nginx.service',
        what: 'the floor that the benches compare with'
    }
];
