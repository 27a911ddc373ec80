/** A script beside the configuration, which the panel alone asks for: it tells of the OPcache of a site, empties it, and tries the walls of PHP. */

/** Its text. It answers JSON; the parameter `PORTICO_ACTION` says what to do. */
export const panelScript = `<?php
header('Content-Type: application/json');
$status = function_exists('opcache_get_status') ? @opcache_get_status(false) : false;
if (($_SERVER['PORTICO_ACTION'] ?? '') === 'reset') {
    echo json_encode(['reset' => $status !== false && opcache_reset()]);
    return;
}
if (($_SERVER['PORTICO_ACTION'] ?? '') === 'sandbox') {
    $root = $_SERVER['PORTICO_ROOT'];
    $probe = $root . '/.portico-probe-' . bin2hex(random_bytes(8));
    $written = @file_put_contents($probe, 'x') !== false;
    $linked = function_exists('symlink') && @symlink('/etc/passwd', $probe . '-link');
    foreach ([$probe, $probe . '-link'] as $path) {
        if (is_link($path) || file_exists($path)) { @unlink($path); }
    }
    $programs = ['exec', 'shell_exec', 'system', 'passthru', 'proc_open', 'popen', 'pcntl_exec'];
    echo json_encode([
        'outside' => array_values(array_filter(['/etc/passwd', '/proc/self/environ', '/tmp'], fn ($path) => @file_exists($path))),
        'programs' => array_values(array_filter($programs, 'function_exists')),
        'linked' => $linked,
        'written' => $written,
    ]);
    return;
}
echo json_encode([
    'enabled' => $status !== false && $status['opcache_enabled'],
    'usedBytes' => $status === false ? 0 : $status['memory_usage']['used_memory'],
    'hitRate' => $status === false ? 0 : $status['opcache_statistics']['opcache_hit_rate'],
    'scripts' => $status === false ? 0 : $status['opcache_statistics']['num_cached_scripts'],
]);
`;
