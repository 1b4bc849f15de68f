"""What EC2 has left to give: everything, unless a rehearsal says otherwise."""

from dataclasses import dataclass, field
from threading import Lock


@dataclass
class Ec2Capacity:
    """How many more instances of a type a zone can give; what is not listed is there without limit.

    Terminated instances give nothing back: other customers took them.
    """

    _left: dict[tuple[str, str], int] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def set(self, instance_type: str, availability_zone: str, available: int | None) -> None:
        """Limit a type in a zone to `available` more instances, or lift the limit with None."""
        if available is not None and available < 0:
            raise ValueError(f"available must be 0 or more, or null, got {available}")
        with self._lock:
            if available is None:
                self._left.pop((instance_type, availability_zone), None)
            else:
                self._left[instance_type, availability_zone] = available

    def take(self, instance_type: str, availability_zone: str, count: int) -> int:
        """Take up to `count` instances and return how many there were."""
        with self._lock:
            left = self._left.get((instance_type, availability_zone))
            if left is None:
                return count
            taken = min(left, count)
            self._left[instance_type, availability_zone] = left - taken
            return taken

    def take_all(self, instance_type: str, availability_zone: str, count: int) -> bool:
        """Take `count` instances, or none if there are fewer, and say whether they were taken."""
        with self._lock:
            left = self._left.get((instance_type, availability_zone))
            if left is not None and left < count:
                return False
            if left is not None:
                self._left[instance_type, availability_zone] = left - count
            return True

    def listed(self) -> list[dict[str, object]]:
        """Describe every limit."""
        with self._lock:
            return [
                {"instance_type": instance_type, "availability_zone": zone, "available": left}
                for (instance_type, zone), left in sorted(self._left.items())
            ]


CAPACITY = Ec2Capacity()
