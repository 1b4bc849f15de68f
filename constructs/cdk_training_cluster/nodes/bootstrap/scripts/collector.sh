#!/bin/bash
# Sends the node's metrics to Prometheus. Whatever goes wrong here, the node starts.
#   collector.sh enable   makes a service of `install`, and starts it
#   collector.sh install  gets the collector and the exporters, and starts them; at every boot, until it succeeds
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh
# shellcheck source=/dev/null
source ./collector.settings
# shellcheck source=/dev/null
source ./downloads.settings

PREFIX=cdk-training-cluster
UNITS=$ROOT/etc/systemd/system
DIRECTORY=$HOME_DIR/collector
TEXTFILES=$DIRECTORY/textfiles
failed=()

# unit NAME COMMAND LINE...: starts a service that leaves the processors and the memory to the jobs.
unit() {
  write_file "$UNITS/$PREFIX-$1.service" <<EOF
[Unit]
Description=Metrics of the training cluster for Prometheus: $1

[Service]
ExecStart=$2
$(printf '%s\n' "${@:3}")
Restart=always
RestartSec=10
Nice=10
CPUQuota=100%
MemoryMax=1G

[Install]
WantedBy=multi-user.target
EOF
  systemctl daemon-reload
  systemctl enable "$PREFIX-$1.service"
  systemctl restart "$PREFIX-$1.service"
}

# fetch PROGRAM URL SHA256: puts the program of an archive into place, unless that version is there.
fetch() {
  local target=$DIRECTORY/$1-$3 archive=$STATE_DIR/$1.tar.gz
  if [[ ! -x $target/$1 ]]; then
    download "$2" "$archive"
    check_sha256 "$archive" "$3" ||
      die "$2 is not the file that was published: its SHA-256 must be $3"
    rm -rf "$target.new" "$target"
    mkdir -p "$target.new"
    tar --extract --gzip --file "$archive" --directory "$target.new" --strip-components 1
    mv "$target.new" "$target"
    rm -f "$archive"
  fi
  ln -sfn "$target/$1" "$DIRECTORY/$1"
}

case $(uname -m) in
  aarch64) architecture=arm64 ;;
  *) architecture=amd64 ;;
esac

# pinned NAME: the checksum or digest for this architecture.
pinned() {
  local variable=$1_${architecture^^}
  printf '%s' "${!variable}"
}

node_exporter() {
  fetch node_exporter "$NODE_EXPORTER_URL$architecture.tar.gz" "$(pinned NODE_EXPORTER)"
  unit node-exporter "${DIRECTORY#"$ROOT"}/node_exporter --web.listen-address=127.0.0.1:$NODE_PORT \
--collector.disable-defaults --collector.loadavg --collector.meminfo --collector.filesystem --collector.netdev \
--collector.netdev.device-exclude=^(lo|docker.*|veth.*)\$\$ --collector.filesystem.mount-points-exclude=^/(dev|proc|run|sys|snap|var/lib/docker)(\$\$|/) \
--collector.textfile --collector.textfile.directory=${TEXTFILES#"$ROOT"}" "DynamicUser=yes"
}

efa() {
  if ! compgen -G "$ROOT/sys/class/infiniband/*" >/dev/null; then return 0; fi
  local home=${SCRIPTS_DIR#"$ROOT"} text=${TEXTFILES#"$ROOT"}/efa.prom
  # What a dead writer has left would look alive.
  unit efa "/usr/bin/python3 -IS $home/efa_counters.py $text $INTERVAL $EFA_PREFIX ${EFA_COUNTERS[*]}" \
    "ExecStopPost=/bin/rm -f $text" NoNewPrivileges=yes ProtectSystem=strict "ReadWritePaths=${text%/*}" ProtectHome=yes \
    PrivateTmp=yes PrivateDevices=yes CapabilityBoundingSet= RestrictAddressFamilies=AF_UNIX LockPersonality=yes \
    RestrictRealtime=yes TasksMax=16
}

dcgm() {
  if [[ -z $DCGM_PORT ]]; then return 0; fi
  local counters=${SCRIPTS_DIR#"$ROOT"}/dcgm.csv image command
  local listen="-a 127.0.0.1:$DCGM_PORT -c $((INTERVAL * 1000))"
  if command -v dcgm-exporter >/dev/null; then
    command="$(command -v dcgm-exporter) $listen -f $counters"
  elif command -v docker >/dev/null; then
    image=$DCGM_IMAGE@$(pinned DCGM)
    # At a later start the node has it, whether or not the registry answers.
    if ! docker image inspect "$image" >/dev/null 2>&1; then retry 3 docker pull --quiet "$image"; fi
    command="$(command -v docker) run --rm --name $PREFIX-dcgm --gpus all --network host \
--volume $counters:/etc/counters.csv:ro $image $listen -f /etc/counters.csv"
  else
    die "the image has neither dcgm-exporter nor Docker: GPU metrics stay out of Prometheus"
  fi
  # The client's limits are not the container's, which Docker's daemon starts.
  unit dcgm "$command" "ExecStartPre=-/bin/sh -c 'docker rm --force $PREFIX-dcgm'"
}

prometheus() {
  fetch prometheus "$PROMETHEUS_URL$architecture.tar.gz" "$(pinned PROMETHEUS)"
  retry 5 find_instance || die "the instance metadata service does not say which instance this is"
  fill prometheus.json "@CLUSTER@=$CLUSTER" "@NODE_GROUP@=$NODE_GROUP" "@REGION@=$REGION" "@INSTANCE_ID@=$instance" \
    "@REMOTE_WRITE_URL@=$REMOTE_WRITE_URL" | write_file "$DIRECTORY/prometheus.yml"
  unit prometheus "${DIRECTORY#"$ROOT"}/prometheus --agent --config.file=${DIRECTORY#"$ROOT"}/prometheus.yml \
--storage.agent.path=/var/lib/$PREFIX-prometheus --web.listen-address=127.0.0.1:$PROMETHEUS_PORT" \
    "DynamicUser=yes" "StateDirectory=$PREFIX-prometheus" ${JOB_ROLE:+"Environment=AWS_CONTAINER_CREDENTIALS_FULL_URI=$JOB_CREDENTIALS"}
}

# part NAME: does one part; the others go on without it.
part() {
  local said
  # In a shell of its own, where a failing command ends it.
  if said=$(bash collector.sh "$1" 2>&1); then return 0; fi
  log "$1: $said"
  failed+=("$1: $(tail -n 2 <<<"$said" | paste -sd " ")")
}

service() {
  write_file "$UNITS/$PREFIX-collector.service" <<EOF
[Unit]
Description=Sets up what sends the node's metrics to Prometheus
After=network-online.target docker.service
Wants=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
WorkingDirectory=${SCRIPTS_DIR#"$ROOT"}
ExecStart=/bin/bash collector.sh install
Restart=on-failure
RestartSec=300

[Install]
WantedBy=multi-user.target
EOF
  systemctl daemon-reload
  systemctl enable "$PREFIX-collector.service"
  # Without waiting: what is downloaded takes longer than all the rest.
  systemctl start --no-block "$PREFIX-collector.service"
}

case $1 in
  enable) bash collector.sh service || report_collector_failure "its service could not be made" ;;
  install)
    mkdir -p "$TEXTFILES" "$STATE_DIR"
    for each in node_exporter efa dcgm prometheus; do part "$each"; done
    if ((${#failed[@]})); then
      report_collector_failure "$(printf '%s; ' "${failed[@]}")"
      exit 1
    fi
    ;;
  service | node_exporter | efa | dcgm | prometheus) "$1" ;;
esac
