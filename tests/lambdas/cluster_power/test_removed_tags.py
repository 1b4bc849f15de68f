from power_scene import Scene


def test_a_group_that_lost_the_tags_of_its_cluster_is_stopped_and_started_all_the_same() -> None:
    scene = Scene()
    group = scene.add()
    scene.minute(4)
    scene.untag(group)
    assert scene.minute(30)["workers"]["decision"] == "keep"
    scene.order("stop")
    scene.minute(3)
    assert (group.desired, group.in_service) == (0, 0)
    scene.order("start")
    scene.minute(3)
    assert group.in_service == 8
